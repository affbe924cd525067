/* See replay.h for the stored form and for which fields are kept. Names of fields are compared in any case. */
#include "gate/replay.h"

#include "base/hash.h"

#define FLAG_BODY_MISSING 1
#define VERSION_BYTES 2
#define SUM_BYTES 8   /* of version 2 */
#define HEAD_BYTES 13 /* after the version and the sum, before the first field */
#define FIELD_BYTES 6 /* before its name */

_Static_assert(VERSION_BYTES + SUM_BYTES + HEAD_BYTES == GATE_RESPONSE_BYTES_MIN, "nothing else is always there");

/* ---- which fields ---- */

bool gate_is_marker(struct slice name)
{
	static const char *const markers[] = {"idempotency-status", "idempotency-replayed", NULL};

	return slice_in_nocase(name, markers);
}

/* Between two neighbours only (RFC 9110, 7.6.1, and what older proxies speak), about the length, or for one person. */
static bool is_never_kept(struct slice name)
{
	static const char *const names[] = {
		"connection",
		"keep-alive",
		"proxy-connection",
		"proxy-authenticate",
		"proxy-authorization",
		"proxy-authentication-info",
		"te",
		"trailer",
		"transfer-encoding",
		"upgrade",
		"content-length",
		"set-cookie",
		"set-cookie2",
		NULL,
	};

	return slice_in_nocase(name, names) || gate_is_marker(name);
}

/* Is the name one of the items of a comma-separated list? */
static bool lists_name(struct slice list, struct slice name)
{
	struct slice item;

	while (slice_list_next(&list, &item))
		if (slice_eq_nocase(item, name))
			return true;
	return false;
}

static bool is_safe(struct slice name)
{
	static const char *const names[] = {"content-language", "location", "etag", "cache-control", NULL};

	return slice_in_nocase(name, names) || (name.n > 2 && slice_starts_nocase(name, "x-"));
}

bool gate_replays_field(const struct gate_replay_rule *rule, struct slice name, const struct slice connection[],
			size_t connection_n)
{
	static const char *const about_the_body[] = {"content-type", "content-encoding", NULL};

	if (is_never_kept(name))
		return false;
	for (size_t i = 0; i < connection_n; i++)
		if (lists_name(connection[i], name))
			return false;
	if (slice_in_nocase(name, about_the_body))
		return true;
	if (rule->kind == REPLAY_SAFE)
		return is_safe(name);
	for (size_t i = 0; rule->kind == REPLAY_LIST && i < rule->names_n; i++)
		if (slice_eq_nocase(name, rule->names[i]))
			return true;
	return false;
}

/* ---- the stored form ---- */

static void replay_put(struct strbuf *out, uint64_t number, unsigned bytes)
{
	ASSERT(bytes == 8 || number >> 8 * bytes == 0);
	while (bytes-- > 0)
		strbuf_add_char(out, (char)(number >> 8 * bytes));
}

static void sum_of(struct slice bytes, char ret_sum[SUM_BYTES])
{
	unsigned char digest[SHA256_BYTES];

	sha256(bytes.p, bytes.n, digest);
	memcpy(ret_sum, digest, SUM_BYTES);
}

void gate_response_encode(const struct gate_response *response, struct strbuf *out)
{
	static const char no_sum[SUM_BYTES];
	size_t sum_at = out->n + VERSION_BYTES;

	ASSERT(response->status >= 100 && response->status <= 999);
	ASSERT(!response->body_missing || response->body.n == 0);
	strbuf_add_str(out, "H2");
	strbuf_add_slice(out, slice_of(no_sum, sizeof no_sum));
	replay_put(out, response->body_missing ? FLAG_BODY_MISSING : 0, 1);
	replay_put(out, (uint64_t)response->status, 2);
	replay_put(out, response->fields_n, 2);
	replay_put(out, response->body.n, 8);
	for (size_t i = 0; i < response->fields_n; i++) {
		const struct gate_field *field = &response->fields[i];

		replay_put(out, field->name.n, 2);
		replay_put(out, field->value.n, 4);
		strbuf_add_slice(out, field->name);
		strbuf_add_slice(out, field->value);
	}
	strbuf_add_slice(out, response->body);
	if (!out->failed)
		sum_of(slice_of(out->p + sum_at + SUM_BYTES, out->n - sum_at - SUM_BYTES), out->p + sum_at);
}

/* What is left of the stored bytes. Whoever takes has looked first whether there is as much. */
static uint64_t replay_take_number(struct slice *rest, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes; i++)
		number = number << 8 | (unsigned char)rest->p[i];
	*rest = slice_of(rest->p + bytes, rest->n - bytes);
	return number;
}

static struct slice take_slice(struct slice *rest, size_t n)
{
	struct slice taken = slice_of(rest->p, n);

	*rest = slice_of(rest->p + n, rest->n - n);
	return taken;
}

static bool take_field(struct slice *rest, struct gate_field *ret_field)
{
	uint64_t name_bytes, value_bytes;

	if (rest->n < FIELD_BYTES)
		return false;
	name_bytes = replay_take_number(rest, 2);
	value_bytes = replay_take_number(rest, 4);
	if (name_bytes + value_bytes > rest->n)
		return false;
	ret_field->name = take_slice(rest, name_bytes);
	ret_field->value = take_slice(rest, value_bytes);
	return true;
}

static enum hx_code damaged(struct hx_error *err)
{
	return error_set(err, HX_RECORD_DAMAGED, "%s", hx_code_text(HX_RECORD_DAMAGED));
}

/* Takes the version and, where there is one, the sum, and looks whether it is that of the rest. */
static bool take_proof(struct slice *rest)
{
	struct slice version, sum;
	char wanted[SUM_BYTES];

	if (rest->n < VERSION_BYTES + HEAD_BYTES)
		return false;
	version = take_slice(rest, VERSION_BYTES);
	if (slice_is(version, "H1"))
		return true;
	if (!slice_is(version, "H2") || rest->n < SUM_BYTES + HEAD_BYTES)
		return false;
	sum = take_slice(rest, SUM_BYTES);
	sum_of(*rest, wanted);
	return slice_eq(sum, slice_of(wanted, sizeof wanted));
}

enum hx_code gate_response_decode(struct slice bytes, struct arena *arena, struct hx_error *err,
				  struct gate_response *ret_response)
{
	struct gate_response response;
	struct slice rest = bytes;
	struct gate_field *fields;
	uint64_t flags, body_bytes;

	if (!take_proof(&rest))
		return damaged(err);
	flags = replay_take_number(&rest, 1);
	response.status = (int)replay_take_number(&rest, 2);
	response.fields_n = replay_take_number(&rest, 2);
	body_bytes = replay_take_number(&rest, 8);
	response.body_missing = flags == FLAG_BODY_MISSING;
	if (flags > FLAG_BODY_MISSING || response.status < 100 || response.status > 999 ||
	    (response.body_missing && body_bytes > 0) || response.fields_n > rest.n / FIELD_BYTES)
		return damaged(err);
	fields = arena_alloc(arena, response.fields_n * sizeof *fields);
	if (!fields)
		return arena_error(arena, err);
	for (size_t i = 0; i < response.fields_n; i++)
		if (!take_field(&rest, &fields[i]))
			return damaged(err);
	if (rest.n != body_bytes)
		return damaged(err);
	response.fields = fields;
	response.body = rest;
	*ret_response = response;
	return HX_OK;
}
