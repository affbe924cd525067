/*
 * Any line as a condition, and what follows it as the attributes of a run. Beside not crashing:
 *
 *   - a refusal names its column on one clean line, and the column is one of the text or the one after it;
 *   - what is taken says the same of a subject each time, the opposite after not, and itself when joined with itself;
 *   - with any smaller arena it is the same or an error;
 *   - whatever holds passes each of the conjuncts.
 */
#include <stdint.h>

#include "base/excerpt.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "model/where.h"

#define AMPLE_BYTES (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const statuses[] = {"PENDING", "FAILED", NULL};
static struct where_subject subject;

static const struct where *parse(struct slice text, enum where_kind kind, struct arena *a)
{
	struct where_names names = {kind, statuses};
	const struct where *where = NULL;
	struct hx_error err = {0};
	size_t column = 0;
	enum hx_code code = where_parse(text, &names, a, &err, &column, &where);

	ASSERT((code == HX_OK) == (where != NULL));
	if (code == HX_BAD_QUERY) {
		ASSERT(err.code == code && slice_starts(slice_str(err.detail), "column "));
		ASSERT(column >= 1 && column <= text.n + 1);
		for (const char *p = err.detail; *p; p++)
			ASSERT((unsigned char)*p >= 0x20);
	} else {
		ASSERT(code == HX_OK || code == HX_TOO_LARGE);
	}
	return where;
}

/* The condition with the text in its places. It may be too long, too deep or too much for that: then nothing is said. */
static void try_around(const char *format, struct slice text, enum where_kind kind, bool wanted)
{
	LOCAL_ARENA(a, AMPLE_BYTES);
	LOCAL_STRBUF(around, AMPLE_BYTES);
	const struct where *where;

	for (; *format; format++) {
		if (*format == 'E')
			strbuf_add_slice(&around, text);
		else
			strbuf_add_char(&around, *format);
	}
	where = parse(strbuf_slice(&around), kind, &a);
	if (where)
		ASSERT(where_holds(where, &subject) == wanted);
}

static void try_conjuncts(const struct where *where)
{
	static const char *const none[] = {NULL};
	const struct where_test *out[WHERE_CONJUNCTS_MAX], *unknown;
	size_t at = 0, n = where_conjuncts(where, out);
	struct hx_error err;

	for (size_t i = 0; i < n && where_holds(where, &subject); i++) {
		/* A null is among the values, or there is something. */
		bool is_null = false;

		for (size_t j = 0; j < out[i]->values_n; j++)
			is_null |= !out[i]->values[j].sortable.p && !out[i]->values[j].number;
		ASSERT(out[i]->op == WHERE_NE || is_null || out[i]->type != WHERE_ATTRIBUTE ||
		       subject.attributes.raw.n > 2);
	}
	unknown = where_unknown(where, none, &at);
	if (unknown)
		ASSERT(where_refuse_name(where, unknown, none, &err, NULL) == HX_BAD_QUERY && err.detail[0]);
}

static void try_where(struct slice text, enum where_kind kind)
{
	LOCAL_ARENA(a, AMPLE_BYTES);
	LOCAL_ARENA(small, hash_bytes(3, text.p, text.n) % 16000);
	const struct where *where = parse(text, kind, &a);
	const struct where *other = parse(text, kind, &small);

	ASSERT(where || !other);
	if (!where)
		return;

	bool holds = where_holds(where, &subject);

	ASSERT(where_holds(where, &subject) == holds);
	if (other)
		ASSERT(where_holds(other, &subject) == holds);
	try_around("not (E)", text, kind, !holds);
	try_around("not not (E)", text, kind, holds);
	try_around("(E) and (E)", text, kind, holds);
	try_around("(E) or (E)", text, kind, holds);
	try_around("not (E) or (E)", text, kind, true);
	try_conjuncts(where);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data, size);
	struct slice line = slice_cut(&rest, '\n');
	struct json attributes;

	if (json_check(rest, NULL, &attributes) != HX_OK)
		attributes = json_trust(slice_str("{\"a\":\"n250000000011\",\"b\":\"sx\\\"\",\"c\":\"b0\"}"));
	subject = (struct where_subject){.status = slice_str("FAILED"),
					 .workflow = slice_str("order"),
					 .name = slice_str("o-1"),
					 .id = 5,
					 .created_at = 1000000000000,
					 .total = 12,
					 .attributes = attributes};
	for (int kind = WHERE_RUN; kind <= WHERE_JOB; kind++)
		try_where(line, (enum where_kind)kind);
	return 0;
}
