/* See api_key.h. */
#include "flow/api_key.h"

#include <stdio.h>

#include "db/columns.h"

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* that of ids */

/* clang-format off */

/* First in every unit that changes a key: on PostgreSQL it also makes them wait for each other. */
DB_STMT(stmt_raise, "keyring_raise", "", "",
	"UPDATE hx_keyring SET version = version + 1 WHERE id = 1");

DB_STMT(stmt_look, "keyring_look", "", "ii",
	"SELECT version, hx_now_ms() FROM hx_keyring WHERE id = 1");

#define IS_LIVE "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > hx_now_ms())"

DB_STMT(stmt_create, "api_key_create", "ittttbii", "ii",
	"INSERT INTO hx_key (id, workspace, requester, name, scope, digest, created_at, expires_at)"
	" SELECT ?1, ?2, ?3, ?4, ?5, ?6, hx_now_ms(), hx_now_ms() + ?7"
	" WHERE (SELECT count(*) FROM hx_key WHERE " IS_LIVE ") < ?8"
	" RETURNING created_at, expires_at");

DB_STMT(stmt_revoke, "api_key_revoke", "i", "",
	"UPDATE hx_key SET revoked_at = hx_now_ms() WHERE id = ?1 AND revoked_at IS NULL");

#define COLUMNS "id, workspace, requester, name, scope, digest, created_at, expires_at, revoked_at"
enum { KEY_ID, KEY_WORKSPACE, KEY_REQUESTER, KEY_NAME, KEY_SCOPE, KEY_DIGEST, KEY_CREATED_AT, KEY_EXPIRES_AT, KEY_REVOKED_AT };

DB_STMT(stmt_read, "api_key_read", "i", "ittttbiii",
	"SELECT " COLUMNS " FROM hx_key WHERE id = ?1");

DB_STMT(stmt_list, "api_key_list", "ii", "ittttbiii",
	"SELECT " COLUMNS " FROM hx_key WHERE id > ?1 ORDER BY id LIMIT ?2");

DB_STMT(stmt_list_live, "api_key_list_live", "ii", "ittttbiii",
	"SELECT " COLUMNS " FROM hx_key WHERE id > ?1 AND " IS_LIVE " ORDER BY id LIMIT ?2");

/* clang-format on */

/* ---- the scope ---- */

static const char *const scope_names[] = {
	[API_KEY_READ] = "read", [API_KEY_EXECUTE] = "execute", [API_KEY_ADMIN] = "admin", [API_KEY_WORKER] = "worker"};

const char *api_key_scope_name(enum api_key_scope scope)
{
	ASSERT(scope >= API_KEY_READ && scope <= API_KEY_WORKER);
	return scope_names[scope];
}

bool api_key_scope_parse(struct slice text, enum api_key_scope *ret_scope)
{
	for (enum api_key_scope scope = API_KEY_READ; scope <= API_KEY_WORKER; scope++)
		if (slice_is(text, scope_names[scope])) {
			*ret_scope = scope;
			return true;
		}
	return false;
}

bool api_key_may(enum api_key_scope scope, enum api_key_scope needed)
{
	if (scope == API_KEY_WORKER)
		return needed == API_KEY_WORKER; /* mutant: worker-key-may-all -> return true; */
	return scope >= (needed == API_KEY_WORKER ? API_KEY_EXECUTE : needed);
}

/* ---- the text ---- */

#define ID_CHARS (2 + 1 + 13)
#define SECRET_CHARS (API_KEY_TEXT_CHARS - ID_CHARS - 1)

_Static_assert(SECRET_CHARS * 5 >= API_KEY_SECRET_BYTES * 8, "every bit of the secret is in the text");

/* Five bits to a character, the last one filled up with zeros. */
static char digit_at(const uint8_t secret[API_KEY_SECRET_BYTES], size_t bit)
{
	size_t byte = bit / 8;
	unsigned next = byte + 1 < API_KEY_SECRET_BYTES ? secret[byte + 1] : 0;

	return alphabet[((unsigned)secret[byte] << 8 | next) >> (11 - bit % 8) & 31];
}

void api_key_format(int64_t id, const uint8_t secret[API_KEY_SECRET_BYTES], char ret_text[API_KEY_TEXT_CHARS + 1])
{
	int n;

	n = snprintf(ret_text, API_KEY_TEXT_CHARS + 1, "%s_", id_text(API_KEY_PREFIX, id).text);
	ASSERT(n == ID_CHARS + 1);
	for (size_t i = 0; i < SECRET_CHARS; i++)
		ret_text[(size_t)n + i] = digit_at(secret, 5 * i);
	ret_text[API_KEY_TEXT_CHARS] = '\0';
}

bool api_key_parse(struct slice text, int64_t *ret_id)
{
	if (text.n != API_KEY_TEXT_CHARS || text.p[ID_CHARS] != '_')
		return false;
	for (size_t i = ID_CHARS + 1; i < text.n; i++)
		if (!text.p[i] || !strchr(alphabet, text.p[i]))
			return false;
	return id_parse(API_KEY_PREFIX, slice_of(text.p, ID_CHARS), ret_id);
}

void api_key_digest(struct slice text, uint8_t ret_digest[SHA256_BYTES])
{
	sha256(text.p, text.n, ret_digest);
}

bool api_key_same(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < SHA256_BYTES; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

/* ---- units ---- */

void api_key_create(struct unit *unit, const struct api_key *key, int64_t lifetime_ms)
{
	unit_add(unit, UNIT_ANY, &stmt_raise, 0, NULL);
	UNIT_ADD(unit, UNIT_MUST, &stmt_create, db_int(key->id), db_text(key->workspace), db_text(key->requester),
		 db_text(key->name), db_str(api_key_scope_name(key->scope)),
		 db_blob(slice_of(key->digest, sizeof key->digest)), lifetime_ms ? db_int(lifetime_ms) : db_null(),
		 db_int(API_KEYS_MAX));
}

void api_key_revoke(struct unit *unit, int64_t id)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_revoke, db_int(id));
	unit_add(unit, UNIT_ANY, &stmt_raise, 0, NULL);
}

void api_key_read(struct unit *unit, int64_t id)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(id));
}

void api_key_list(struct unit *unit, int64_t after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_int(after), db_int(limit));
}

void api_key_list_live(struct unit *unit, int64_t after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list_live, db_int(after), db_int(limit));
}

void api_keyring_look(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_look, 0, NULL);
}

void api_key_of_row(const struct db_rows *rows, size_t row, struct api_key *ret_key)
{
	struct slice digest = db_cell(rows, row, KEY_DIGEST)->s;

	*ret_key = (struct api_key){
		.id = db_cell(rows, row, KEY_ID)->i,
		.workspace = db_cell(rows, row, KEY_WORKSPACE)->s,
		.requester = db_cell(rows, row, KEY_REQUESTER)->s,
		.name = db_cell(rows, row, KEY_NAME)->s,
		.created_at_ms = cell_int(db_cell(rows, row, KEY_CREATED_AT)),
		.expires_at_ms = cell_int(db_cell(rows, row, KEY_EXPIRES_AT)),
		.revoked_at_ms = cell_int(db_cell(rows, row, KEY_REVOKED_AT)),
	};
	/* The CHECKs of its table say so. */
	ASSERT(api_key_scope_parse(db_cell(rows, row, KEY_SCOPE)->s, &ret_key->scope) && digest.n == SHA256_BYTES);
	memcpy(ret_key->digest, digest.p, SHA256_BYTES);
}
