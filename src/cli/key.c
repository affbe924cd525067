/*
 * hapax key create | list | revoke: who may ask a server, in whose name (see flow/api_key.h).
 *
 * They open the store themselves: the first key cannot be made by asking a server that wants one. On SQLite that is a second
 * process with a transaction of its own, beside the server's lane. It is short, takes SQLite's write lock as the lane does, and never
 * copies the log back: why that is safe stands in db/sqlite.c. A server notices within KEYRING_AGE_MAX_MS.
 *
 * A key is shown once, on standard output and alone there, after it is durable. Nothing else ever prints it.
 */
#include <stdio.h>
#include <sys/random.h>

#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_write.h"
#include "cli/local.h"
#include "db/migrate.h"
#include "engine/keyring.h"
#include "flow/api_key.h"
#include "flow/entity.h"

#define PAGE 500
#define PAGE_BYTES_MAX (4u << 20)
#define TRIES_MAX 5 /* of a transaction that met another one */

/* ---- the store ---- */

struct key_store {
	struct db *db;
	struct arena arena;
};

/* Whatever it says, it is to be closed. A store that does not fit is left alone. */
static enum hx_code store_open(struct key_store *store, const char *url, bool read_only, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system(), .read_only = read_only};
	enum hx_code code;

	*store = (struct key_store){0};
	arena_init(&store->arena, PAGE_BYTES_MAX);
	if (strcmp(url, "sqlite::memory:") == 0)
		return error_set(err, HX_CONFIG_ERROR, "a store in memory is its server's alone: it has no keys");
	code = command_want_store(url, STORE_HINT_MAKE, err);
	if (code)
		return code;
	code = db_open(&options, &store->db, err);
	return code ? code : migrate_check(store->db, err);
}

static void store_close(struct key_store *store)
{
	db_close(store->db);
	arena_release(&store->arena);
}

/* One unit, tried again when it met another transaction. The rows live until the next one. */
static enum hx_code store_run(struct key_store *store, struct unit *unit, struct unit_result *ret_result,
			      struct hx_error *err)
{
	enum hx_code code = HX_CONCURRENCY_ERROR;

	for (int i = 0; i < TRIES_MAX && code == HX_CONCURRENCY_ERROR; i++) {
		arena_reset(&store->arena);
		code = db_run_unit(store->db, unit, ret_result, &store->arena, err);
	}
	return code;
}

/* ---- create ---- */

/* Of an option whose value is in `text`; none: nothing. */
static enum hx_code read_name(const struct command_args *args, const char *option, struct slice *ret_text,
			      struct hx_error *err)
{
	const char *value = command_value(args, option);

	*ret_text = slice_str(value ? value : "");
	if (!value || entity_name_is_good(*ret_text))
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR,
			 "--%s is 1 to %d bytes of UTF-8 without control characters, not \"%s\"", option,
			 ENTITY_NAME_MAX, excerpt_of(*ret_text).text);
}

static enum hx_code read_options(const struct command_args *args, struct api_key *key, int64_t *ret_lifetime_ms,
				 struct hx_error *err)
{
	const char *expires = command_value(args, "expires");
	enum hx_code code = read_name(args, "workspace", &key->workspace, err);

	ASSERT(api_key_scope_parse(slice_str(command_value(args, "scope")), &key->scope)); /* it is one of its words */
	if (!code)
		code = read_name(args, "requester", &key->requester, err);
	if (!code)
		code = read_name(args, "name", &key->name, err);
	if (!code && expires)
		code = duration_parse("--expires", slice_str(expires), err, ret_lifetime_ms);
	return code;
}

static enum hx_code draw(struct api_key *key, char ret_text[API_KEY_TEXT_CHARS + 1], struct hx_error *err)
{
	uint8_t secret[API_KEY_SECRET_BYTES];
	struct id_source ids;

	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return error_set(err, HX_INTERNAL, "the system has no random numbers");
	id_source_init(&ids, id_random_node());
	key->id = id_next(&ids, clock_wall(clock_system()));
	api_key_format(key->id, secret, ret_text);
	api_key_digest(slice_str(ret_text), key->digest);
	return HX_OK;
}

static enum hx_code insert(struct key_store *store, struct api_key *key, int64_t lifetime_ms, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	enum hx_code code;

	api_key_create(&unit, key, lifetime_ms);
	code = store_run(store, &unit, &result, err);
	if (code == HX_OUTCOME_UNKNOWN)
		return error_set(err, code,
				 "it is not known whether the key was made; nobody has it: revoke it if "
				 "`hapax key list` shows it");
	if (!code && result.verdict != UNIT_WON)
		code = error_set(err, HX_TOO_LARGE, "there are %d keys that are good: revoke some first", API_KEYS_MAX);
	if (!code) {
		const struct db_value *expires = db_cell(&result.rows[API_KEY_MADE], 0, 1);

		key->created_at_ms = db_cell(&result.rows[API_KEY_MADE], 0, 0)->i;
		key->expires_at_ms = expires->type == DB_NULL ? 0 : expires->i;
	}
	return code;
}

/* ---- in words, and as JSON ---- */

static const char *status_of(const struct api_key *key)
{
	bool over = key->expires_at_ms && key->expires_at_ms <= clock_wall(clock_system()).ms;

	return key->revoked_at_ms ? "revoked" : over ? "expired" : "live";
}

static void key_add_key(struct strbuf *out, const struct api_key *key, const char *text)
{
	strbuf_add_char(out, '{');
	json_more_id(out, "id", API_KEY_ID_PREFIX, key->id);
	if (text)
		json_more_word(out, "key", text);
	json_more_text(out, "name", key->name);
	json_more_text(out, "workspace", key->workspace);
	json_more_text(out, "requester", key->requester);
	json_more_word(out, "scope", api_key_scope_name(key->scope));
	json_more_word(out, "status", status_of(key));
	json_more_time(out, "createdAt", key->created_at_ms);
	json_more_time(out, "expiresAt", key->expires_at_ms);
	json_more_time(out, "revokedAt", key->revoked_at_ms);
	strbuf_add_char(out, '}');
}

/* What it is, beside it. Whoever makes the first one hears now what that changes, and not from those who stand outside. */
static void tell_made(const struct api_key *key, bool first)
{
	char until[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){key->expires_at_ms}, until);
	_Static_assert(KEYRING_AGE_MAX_MS == 2000, "the words below");
	if (first)
		fprintf(stderr,
			"This is the first key of this store: within 2 s every request needs one, and servers that start from "
			"now on call loopback addresses only if outbound.allow has them\n");
	fprintf(stderr, "%s: %s in the workspace %s as %s, %s%s. It is shown this once:\n",
		id_text(API_KEY_ID_PREFIX, key->id).text, api_key_scope_name(key->scope),
		excerpt_of(key->workspace).text, excerpt_of(key->requester).text,
		key->expires_at_ms ? "until " : "until it is revoked", key->expires_at_ms ? until : "");
}

/* Of all that there are and were. Where that cannot be asked, nothing is said: the key is made all the same. */
static bool is_first(struct key_store *store)
{
	struct unit_result result;
	LOCAL_UNIT(unit);

	api_key_list(&unit, /* after= */ -1, 2);
	return store_run(store, &unit, &result, /* err= */ NULL) == HX_OK && result.rows[0].n == 1;
}

enum hx_code key_create_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	char text[API_KEY_TEXT_CHARS + 1];
	struct key_store store;
	struct api_key key = {0};
	int64_t lifetime_ms = 0;
	enum hx_code code = read_options(args, &key, &lifetime_ms, err);

	if (!code)
		code = draw(&key, text, err);
	if (code)
		return code;
	code = store_open(&store, command_value(args, "db"), /* read_only= */ false, err);
	if (!code)
		code = insert(&store, &key, lifetime_ms, err);
	if (!code)
		key_add_key(out, &key, text);
	if (!code && !command_value(args, "json"))
		tell_made(&key, is_first(&store));
	store_close(&store);
	explicit_bzero(text, sizeof text);
	return code;
}

/* ---- list ---- */

static enum hx_code list_page(struct key_store *store, int64_t *after, size_t *ret_got, struct strbuf *out,
			      struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	enum hx_code code;

	api_key_list(&unit, *after, PAGE);
	code = store_run(store, &unit, &result, err);
	*ret_got = code ? 0 : result.rows[0].n;
	for (size_t i = 0; i < *ret_got; i++) {
		struct api_key key;

		api_key_of_row(&result.rows[0], i, &key);
		strbuf_add_str(out, *after >= 0 ? "," : "");
		key_add_key(out, &key, /* text= */ NULL);
		*after = key.id;
	}
	return code;
}

enum hx_code key_list_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	struct key_store store;
	int64_t after = -1;
	size_t got = PAGE;
	enum hx_code code = store_open(&store, command_value(args, "db"), /* read_only= */ true, err);

	strbuf_add_str(out, "{\"items\":[");
	while (!code && got == PAGE)
		code = list_page(&store, &after, &got, out, err);
	strbuf_add_str(out, "]}");
	store_close(&store);
	if (code)
		strbuf_reset(out); /* half a list is none */
	return code;
}

/* ---- revoke ---- */

static enum hx_code read_id(const char *text, int64_t *ret_id, struct hx_error *err)
{
	if (strncmp(text, API_KEY_PREFIX "_", strlen(API_KEY_PREFIX) + 1) == 0)
		return error_set(
			err, HX_VALIDATION_ERROR,
			"that is a key, which should not stand on a command line: give its id, which is key_ and "
			"what follows hx_ up to the next _");
	if (id_parse(API_KEY_ID_PREFIX, slice_str(text), ret_id))
		return HX_OK;
	return error_set(err, HX_NOT_FOUND, "there is no key %s: `hapax key list` shows them",
			 excerpt_of(slice_str(text)).text);
}

/* *ret_now: it is revoked by this, and was not before. */
static enum hx_code revoke_id(struct key_store *store, int64_t id, bool *ret_now, struct hx_error *err)
{
	struct unit_result result;
	LOCAL_UNIT(unit);
	enum hx_code code;

	api_key_revoke(&unit, id);
	code = store_run(store, &unit, &result, err);
	*ret_now = !code && result.verdict == UNIT_WON;
	if (code || *ret_now)
		return code;
	unit_init(&unit, /* op= */ 0);
	api_key_read(&unit, id);
	code = store_run(store, &unit, &result, err);
	if (!code && result.rows[0].n == 0)
		code = error_set(err, HX_NOT_FOUND, "there is no such key: `hapax key list` shows them");
	return code;
}

enum hx_code key_revoke_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	struct key_store store;
	bool now = false;
	int64_t id = 0;
	enum hx_code code = read_id(args->operands[0], &id, err);

	if (code)
		return code;
	code = store_open(&store, command_value(args, "db"), /* read_only= */ false, err);
	if (!code)
		code = revoke_id(&store, id, &now, err);
	store_close(&store);
	if (!code)
		strbuf_addf(out, "{\"id\":\"%s\",\"status\":\"revoked\",\"already\":%s}", args->operands[0],
			    now ? "false" : "true");
	return code;
}
