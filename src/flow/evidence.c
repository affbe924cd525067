/* See evidence.h. What is read here is a stranger's: every member is looked at before it is believed. */
#include "flow/evidence.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"

#define ARENA_BYTES_MAX (256u << 20) /* an index of the members, and texts that have escapes */
#define SEAL_HEAD ",\"sha256\":\""
#define SEAL_BYTES (sizeof SEAL_HEAD - 1 + 2 * SHA256_BYTES + 2)

/* ---- seals ---- */

void evidence_seal(struct strbuf *text, size_t start)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	if (text->failed)
		return;
	sha256(text->p + start, text->n - start, digest);
	sha256_hex(digest, hex);
	strbuf_addf(text, SEAL_HEAD "%s\"}", hex);
}

/* 64 digits of hex, lower-case. */
static bool read_hex(struct slice text, uint8_t ret_hash[SHA256_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	if (text.n != (size_t)2 * SHA256_BYTES)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		const char *digit = memchr(digits, text.p[i], 16);

		if (!digit)
			return false;
		ret_hash[i / 2] = (uint8_t)(i % 2 ? ret_hash[i / 2] | (digit - digits) : (digit - digits) << 4);
	}
	return true;
}

/* What stands at its end as its seal; false: nothing does. */
static bool seal_of(struct slice raw, uint8_t ret_hash[SHA256_BYTES])
{
	const size_t head = sizeof SEAL_HEAD - 1;
	const char *seal;

	if (raw.n <= SEAL_BYTES)
		return false;
	seal = raw.p + raw.n - SEAL_BYTES;
	return memcmp(seal, SEAL_HEAD, head) == 0 && memcmp(raw.p + raw.n - 2, "\"}", 2) == 0 &&
	       read_hex(slice_of(seal + head, (size_t)2 * SHA256_BYTES), ret_hash);
}

/* E1. */
static bool is_sealed(struct slice raw, const struct audit_place *place, const char *what,
		      struct audit_finding *finding)
{
	uint8_t wanted[SHA256_BYTES], found[SHA256_BYTES];
	bool there = seal_of(raw, found);

	sha256(raw.p, raw.n > SEAL_BYTES ? raw.n - SEAL_BYTES : raw.n, wanted);
	return audit_same_hash(finding, place, what, wanted, slice_of(found, there ? SHA256_BYTES : 0));
}

/* ---- members ---- */

/* An object that is read member by member. The first that is not as it must be is told, and ends it. */
struct reading {
	struct arena *arena;
	struct json object;
	const char *what; /* "history row", "subject" */
	int64_t n;        /* which of them; 0: there is one */
	struct hx_error *err;
	enum hx_code code;
};

static void refuse(struct reading *r, const char *name, const char *wanted)
{
	char number[24] = "";

	if (r->code)
		return;
	if (r->n)
		snprintf(number, sizeof number, " %lld", (long long)r->n);
	r->code = error_set(r->err, HX_VALIDATION_ERROR, "%s%s: %s is missing, or not %s", r->what, number, name,
			    wanted);
}

static bool find(struct reading *r, const char *name, enum json_type type, const char *wanted, struct json *ret)
{
	bool fine = !r->code && json_find(r->object, slice_str(name), ret) && json_type(*ret) == type;

	if (!fine)
		refuse(r, name, wanted);
	return fine;
}

static int64_t int_of(struct reading *r, const char *name)
{
	int64_t number = 0;
	struct json value;

	if (find(r, name, JSON_NUMBER, "a whole number", &value) && json_int64(value, NULL, &number))
		refuse(r, name, "a whole number");
	return number;
}

static struct slice text_of(struct reading *r, const char *name)
{
	struct slice text = {"", 0};
	struct json value;

	if (find(r, name, JSON_STRING, "a string", &value))
		text = json_string_view(value, r->arena);
	if (!text.p && !r->code)
		r->code = arena_error(r->arena, r->err);
	return text.p ? text : slice_str("");
}

static int64_t id_of(struct reading *r, const char *name, const char *prefix)
{
	int64_t id = 0;

	if (!id_parse(prefix, text_of(r, name), &id))
		refuse(r, name, "an id");
	return id;
}

static int64_t time_of(struct reading *r, const char *name)
{
	struct wall_time time = {0};

	if (wall_time_parse(name, text_of(r, name), NULL, &time))
		refuse(r, name, "a time");
	return time.ms;
}

static void hash_of(struct reading *r, const char *name, uint8_t ret_hash[SHA256_BYTES])
{
	memset(ret_hash, 0, SHA256_BYTES);
	if (!read_hex(text_of(r, name), ret_hash))
		refuse(r, name, "64 digits of hex");
}

static bool bool_of(struct reading *r, const char *name)
{
	struct json value;

	return find(r, name, JSON_BOOL, "true or false", &value) && json_bool(value);
}

/* A part of the whole, which may be null. */
static bool part_of(struct reading *r, const char *name, struct json *ret)
{
	if (!r->code && json_find(r->object, slice_str(name), ret) && json_type(*ret) == JSON_NULL)
		return false;
	return find(r, name, JSON_OBJECT, "an object or null", ret);
}

/* ---- the parts ---- */

struct check {
	struct evidence *evidence;
	struct arena *arena;
	struct hx_error *err;
	struct json whole;
	const struct audit_noun *noun;
	struct audit_subject subject;
	uint8_t head[SHA256_BYTES];
	struct slice name;
	int64_t batch; /* of the subject, where it is one */
};

static struct reading reading_of(struct check *c, struct json object, const char *what, int64_t n)
{
	return (struct reading){.arena = c->arena, .object = object, .what = what, .n = n, .err = c->err};
}

static const struct audit_noun *noun_named(struct slice name, bool own_table)
{
	static const struct audit_noun *const nouns[] = {&audit_entity, &audit_run,     &audit_batch,
							 &audit_job,    &audit_account, &audit_schedule};

	for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
		if (slice_is(name, nouns[i]->name))
			return nouns[i] == &audit_entity && own_table ? &audit_table_entity : nouns[i];
	return NULL;
}

/* What has an id is called by it; the others by their noun. */
static bool is_named_so(const struct check *c)
{
	char prefix[24];
	int64_t id;

	if (c->noun->prefix)
		return id_parse(c->noun->prefix, c->name, &id) && id == c->subject.id;
	snprintf(prefix, sizeof prefix, "%s:", c->noun->name);
	return slice_starts(c->name, prefix);
}

static enum hx_code check_subject(struct check *c)
{
	struct audit_finding *finding = &c->evidence->finding;
	struct audit_place place = {.id = 0};
	struct reading all = reading_of(c, c->whole, "evidence", 0), r;
	struct json object;

	if (!find(&all, "subject", JSON_OBJECT, "an object", &object))
		return all.code;
	if (!is_sealed(object.raw, &place, "subject", finding))
		return HX_OK;
	r = reading_of(c, object, "subject", 0);
	c->noun = noun_named(text_of(&r, "noun"), bool_of(&r, "ownTable"));
	if (!c->noun)
		refuse(&r, "noun", "entity, run, batch, job, account or schedule");
	c->name = text_of(&r, "name");
	hash_of(&r, "head", c->head);
	c->subject = (struct audit_subject){
		.id = id_of(&r, "id", "subject"),
		.version = int_of(&r, "version"),
		.op = id_of(&r, "op", "op"),
		.fence = int_of(&r, "fence"),
		.at = time_of(&r, "time"),
		.seq = int_of(&r, "seq"),
		.status = text_of(&r, "status"),
		.head = slice_of(c->head, SHA256_BYTES),
	};
	if (r.code)
		return r.code;
	snprintf(c->evidence->subject, AUDIT_NAME_BYTES, "%.*s", SLICE_ARGS(c->name));
	sha256_hex(c->head, c->evidence->head);
	c->batch = c->noun == &audit_batch ? c->subject.id : 0;
	place.id = c->subject.id;
	(void)audit_holds(finding, &place, is_named_so(c), "name", "that of its id or noun", c->name);
	return HX_OK;
}

/* E4. */
static enum hx_code check_definition(struct check *c)
{
	struct audit_place place = {.id = c->subject.id};
	struct reading all = reading_of(c, c->whole, "evidence", 0), r;
	uint8_t told[SHA256_BYTES], found[SHA256_BYTES];
	struct json object, text;
	struct slice plain;

	if (!part_of(&all, "definition", &object))
		return all.code;
	if (!is_sealed(object.raw, &place, "definition", &c->evidence->finding))
		return HX_OK;
	r = reading_of(c, object, "definition", 0);
	(void)text_of(&r, "name");
	(void)int_of(&r, "version");
	hash_of(&r, "textSha256", told);
	if (r.code || (json_find(object, slice_str("text"), &text) && json_type(text) == JSON_NULL))
		return r.code;
	plain = text_of(&r, "text");
	sha256(plain.p, plain.n, found);
	if (!r.code)
		(void)audit_same_hash(&c->evidence->finding, &place, "definition text", found,
				      slice_of(told, SHA256_BYTES));
	return r.code;
}

static enum hx_code check_row(struct check *c, struct audit_chain *chain, struct json object, int64_t n)
{
	struct audit_finding *finding = &c->evidence->finding;
	struct audit_place place = {c->subject.id, "history row", n};
	struct reading r = reading_of(c, object, "history row", n);
	uint8_t hash[SHA256_BYTES];
	struct history_row row;

	if (!is_sealed(object.raw, &place, "text", finding))
		return HX_OK;
	row = (struct history_row){
		.subject = c->subject.id,
		.seq = int_of(&r, "seq"),
		.from = text_of(&r, "from"),
		.to = text_of(&r, "to"),
		.version = int_of(&r, "version"),
		.fence = int_of(&r, "fence"),
		.op = id_of(&r, "op", "op"),
		.at = time_of(&r, "time"),
		.node = text_of(&r, "node"),
	};
	hash_of(&r, "hash", hash);
	if (!r.code && audit_chain_add(chain, c->noun, &row, slice_of(hash, SHA256_BYTES), finding))
		c->evidence->rows++;
	return r.code;
}

/* E2. */
static enum hx_code check_history(struct check *c)
{
	struct reading all = reading_of(c, c->whole, "evidence", 0);
	enum hx_code code = HX_OK;
	struct audit_chain chain;
	struct json rows, row;
	struct json_iter it;

	if (!find(&all, "history", JSON_ARRAY, "an array", &rows))
		return all.code;
	audit_chain_start(&chain, c->subject.id);
	it = json_iter_of(rows);
	for (int64_t n = 1; !code && !c->evidence->finding.there && json_iter_element(&it, &row); n++)
		code = check_row(c, &chain, row, n);
	if (!code && !c->evidence->finding.there)
		(void)audit_chain_end(&chain, &c->subject, &c->evidence->finding);
	return code;
}

/* ---- money ---- */

struct sums {
	int64_t seq, balance;      /* of the entry before */
	int64_t charged, refunded; /* of the batch */
};

static bool entry_fits(struct check *c, const struct audit_entry_row *row, const struct audit_place *place,
		       struct sums *sums)
{
	struct audit_finding *finding = &c->evidence->finding;
	struct audit_entry entry;

	if ((!c->batch && !audit_entry_follows(row, place, sums->seq, sums->balance, finding)) ||
	    !audit_entry_read(row, place, &entry, finding))
		return false;
	if (!c->batch)
		return true;
	if (entry.of_batch && entry.kind == ENTRY_REFUND)
		sums->refunded = audit_sum(sums->refunded, row->amount);
	else
		sums->charged = (int64_t)((uint64_t)sums->charged - (uint64_t)row->amount);
	return audit_holds(finding, place, entry.of_batch && entry.batch == c->batch, "key", "one of this batch",
			   row->key) &&
	       audit_holds(finding, place, row->seq > sums->seq, "seq", "above that of the one before",
			   slice_str("another"));
}

static enum hx_code check_entry(struct check *c, struct json object, int64_t n, struct sums *sums)
{
	struct audit_place place = {c->subject.id, "ledger entry", n};
	struct reading r = reading_of(c, object, "ledger entry", n);
	struct audit_entry_row row;

	if (!is_sealed(object.raw, &place, "text", &c->evidence->finding))
		return HX_OK;
	row = (struct audit_entry_row){
		.seq = int_of(&r, "seq"),
		.amount = int_of(&r, "amount"),
		.balance = int_of(&r, "balance"),
		.key = text_of(&r, "key"),
		.reason = text_of(&r, "reason"),
	};
	(void)time_of(&r, "time");
	if (r.code)
		return r.code;
	place.seq = row.seq;
	if (entry_fits(c, &row, &place, sums))
		c->evidence->entries++;
	sums->seq = row.seq;
	sums->balance = row.balance;
	return HX_OK;
}

static bool sums_fit(struct check *c, struct reading *r, const struct sums *sums)
{
	struct audit_finding *finding = &c->evidence->finding;
	struct audit_place place = {.id = c->subject.id};
	int64_t balance = int_of(r, "balance"), charged = int_of(r, "charged"), refunded = int_of(r, "refunded");

	if (r->code)
		return false;
	if (!c->batch)
		return audit_equal(finding, &place, "balance", sums->balance, balance);
	return audit_equal(finding, &place, "charged", sums->charged, charged) &&
	       audit_equal(finding, &place, "refunded", sums->refunded, refunded);
}

/* E3. */
static enum hx_code check_ledger(struct check *c)
{
	struct reading all = reading_of(c, c->whole, "evidence", 0), r;
	struct json object, entries, entry;
	enum hx_code code = HX_OK;
	struct sums sums = {0};
	struct json_iter it;

	if (!part_of(&all, "ledger", &object)) {
		if (!all.code && (c->batch || c->noun == &audit_account))
			refuse(&all, "ledger", "an object: this subject has one");
		return all.code;
	}
	r = reading_of(c, object, "ledger", 0);
	(void)text_of(&r, "account");
	if (!find(&r, "entries", JSON_ARRAY, "an array", &entries))
		return r.code;
	it = json_iter_of(entries);
	for (int64_t n = 1; !code && !c->evidence->finding.there && json_iter_element(&it, &entry); n++)
		code = check_entry(c, entry, n, &sums);
	if (!code && !c->evidence->finding.there)
		(void)sums_fit(c, &r, &sums);
	return code ? code : r.code;
}

/* ---- all of it ---- */

static enum hx_code open_whole(struct check *c, struct slice text)
{
	struct reading all;
	struct json format;
	enum hx_code code;

	if (text.n > EVIDENCE_BYTES_MAX)
		return error_set(c->err, HX_TOO_LARGE, "it has more than %u bytes", EVIDENCE_BYTES_MAX);
	code = json_check(text, c->err, &c->whole);
	if (code)
		return code;
	if (json_type(c->whole) != JSON_OBJECT || !json_find(c->whole, slice_str("format"), &format) ||
	    json_type(format) != JSON_STRING || !json_string_is(format, slice_str(EVIDENCE_FORMAT)))
		return error_set(c->err, HX_VALIDATION_ERROR,
				 "it is no evidence of a kind that this program knows: format is not \"%s\"",
				 EVIDENCE_FORMAT);
	/* Of two members of one name others may read the one that was not checked. */
	code = json_check_unique(c->whole, c->arena, c->err);
	if (code)
		return code;
	all = reading_of(c, c->whole, "evidence", 0);
	(void)text_of(&all, "workspace");
	c->evidence->at = time_of(&all, "at");
	return all.code;
}

/* Rows first, and then the whole: so that a change is named where it is. What stands around the whole is a line's end, or nothing. */
static enum hx_code check_all(struct check *c, struct slice text)
{
	static enum hx_code (*const parts[])(struct check * c) = {check_subject, check_definition, check_history,
								  check_ledger};
	struct audit_finding *finding = &c->evidence->finding;
	enum hx_code code = open_whole(c, text);
	struct audit_place place;
	size_t around;

	for (size_t i = 0; !code && !finding->there && i < sizeof parts / sizeof *parts; i++)
		code = parts[i](c);
	if (code || finding->there)
		return code;
	place = (struct audit_place){.id = c->subject.id};
	around = text.n - c->whole.raw.n;
	if (is_sealed(c->whole.raw, &place, "file", finding))
		(void)audit_holds(finding, &place, around == 0 || (around == 1 && text.p[text.n - 1] == '\n'), "file",
				  "nothing but a line's end around it", slice_str("more"));
	return HX_OK;
}

enum hx_code evidence_check(struct slice text, struct evidence *ret, struct hx_error *err)
{
	struct hx_error own = {.code = HX_OK};
	enum hx_code code;
	struct check c;

	LOCAL_ARENA(arena, ARENA_BYTES_MAX);
	*ret = (struct evidence){.at = 0};
	c = (struct check){.evidence = ret, .arena = &arena, .err = err ? err : &own};
	code = check_all(&c, text);
	if (ret->finding.there)
		snprintf(ret->finding.subject, AUDIT_NAME_BYTES, "%s", ret->subject[0] ? ret->subject : "evidence");
	return code;
}
