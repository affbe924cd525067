/* See batch_items.h. */
#include "cli/batch_items.h"

#include "base/excerpt.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/question.h"
#include "flow/batch.h"
#include "model/nearest.h"

#define FILE_BYTES_MAX (1u << 30)
#define ITEM_SCRATCH_BYTES_MAX (256u << 20)
#define ITEM_LOOKS "an item is an object like {\"input\": {}, \"cost\": 5}"

/* Where a fault is. */
struct place {
	struct excerpt file;
	size_t line;
};

#define FAULT(at, err, format, ...)                                                                                    \
	error_set(err, HX_VALIDATION_ERROR, "%s:%zu: " format, (at)->file.text, (at)->line, ##__VA_ARGS__)

/* ---- one item ---- */

/* Money is counted, not measured: the server takes digits alone too. */
static bool is_counted(struct json value)
{
	for (size_t i = 0; i < value.raw.n; i++)
		if (value.raw.p[i] < '0' || value.raw.p[i] > '9')
			return false;
	return true;
}

static enum hx_code check_cost(struct json item, const struct place *at, struct hx_error *err)
{
	struct json value;
	int64_t cost;

	if (!json_find(item, slice_str("cost"), &value))
		return FAULT(at, err, "the cost is missing: " ITEM_LOOKS);
	if (!is_counted(value) || json_int64(value, /* err= */ NULL, &cost) || cost > BATCH_COST_MAX)
		return FAULT(at, err, "the cost is a whole number from 0 to %lld, not %s", (long long)BATCH_COST_MAX,
			     excerpt_of(value.raw).text);
	return HX_OK;
}

static enum hx_code check_input(struct json item, const struct place *at, struct hx_error *err)
{
	struct json value;

	if (!json_find(item, slice_str("input"), &value) || value.raw.n <= BATCH_INPUT_BYTES_MAX)
		return HX_OK;
	return FAULT(at, err, "the input has %zu bytes, and may have %u", value.raw.n, BATCH_INPUT_BYTES_MAX);
}

static enum hx_code check_names(struct json item, const struct place *at, struct arena *scratch, struct hx_error *err)
{
	static const char *const known[] = {"input", "cost", NULL};
	struct json_iter it = json_iter_of(item);
	struct json name, value;

	while (json_iter_member(&it, &name, &value)) {
		struct slice text = json_string_view(name, scratch);

		if (scratch->failed)
			return arena_error(scratch, err);
		if (!slice_is(text, known[0]) && !slice_is(text, known[1]))
			return FAULT(at, err, "an item has no member \"%s\"%s", excerpt_of(text).text,
				     nearest_words(text, known, "\"", "\"").text);
	}
	return HX_OK;
}

static enum hx_code check_item(struct batch_items *items, struct json item, const struct place *at,
			       struct arena *scratch, struct hx_error *err)
{
	struct hx_error wrong;
	enum hx_code code;

	if (json_type(item) != JSON_OBJECT)
		return FAULT(at, err, "%s, not %s", ITEM_LOOKS, excerpt_of(item.raw).text);
	if (++items->n > BATCH_ITEMS_MAX)
		return FAULT(at, err, "a batch has at most %d items", BATCH_ITEMS_MAX);
	arena_reset(scratch);
	code = check_names(item, at, scratch, err);
	if (!code)
		code = check_cost(item, at, err);
	if (!code)
		code = check_input(item, at, err);
	if (!code && json_check_unique(item, scratch, &wrong))
		code = error_set(err, wrong.code, "%s:%zu: in the item, %s", at->file.text, at->line, wrong.detail);
	return code;
}

/* ---- one to a line ---- */

static enum hx_code take_line(struct batch_items *items, struct slice line, const struct place *at,
			      struct arena *scratch, struct hx_error *err)
{
	struct hx_error wrong;
	struct json item;
	enum hx_code code;

	if (json_space_end(line.p, line.p + line.n) == line.p + line.n) /* blank */
		return HX_OK;
	if (json_check(line, &wrong, &item)) /* "1:COLUMN: what": the line is another one */
		return error_set(err, HX_VALIDATION_ERROR, "%s:%zu%s; one item to a line, or all in an array",
				 at->file.text, at->line, wrong.detail + 1);
	strbuf_add_str(&items->text, items->n > 0 ? "," : "");
	code = check_item(items, item, at, scratch, err);
	strbuf_add_slice(&items->text, item.raw);
	return code;
}

/* They become an array too. */
static enum hx_code take_lines(struct batch_items *items, struct slice text, struct place *at, struct arena *scratch,
			       struct hx_error *err)
{
	enum hx_code code = HX_OK;

	strbuf_add_char(&items->text, '[');
	for (at->line = 1; text.n > 0 && !code; at->line++) {
		const char *end = memchr(text.p, '\n', text.n);
		size_t n = end ? (size_t)(end - text.p) : text.n;

		code = take_line(items, slice_of(text.p, n), at, scratch, err);
		n += end != NULL;
		text = slice_of(text.p + n, text.n - n);
	}
	strbuf_add_char(&items->text, ']');
	if (!code && items->text.failed)
		code = strbuf_error(&items->text, err);
	items->array = json_trust(strbuf_slice(&items->text));
	return code;
}

/* ---- all in an array ---- */

static enum hx_code take_array(struct batch_items *items, struct slice text, struct place *at, struct arena *scratch,
			       struct hx_error *err)
{
	struct json_iter it;
	struct hx_error wrong;
	struct json item;
	enum hx_code code = HX_OK;
	const char *counted = text.p; /* the line of this byte is at->line */

	at->line = 1;
	if (json_check(text, &wrong, &items->array))
		return error_set(err, HX_VALIDATION_ERROR, "%s:%s", at->file.text, wrong.detail);
	it = json_iter_of(items->array);
	while (!code && json_iter_element(&it, &item)) {
		for (; counted < item.raw.p; counted++)
			at->line += *counted == '\n';
		code = check_item(items, item, at, scratch, err);
	}
	return code;
}

/* ---- the file ---- */

static enum hx_code take_text(struct batch_items *items, struct strbuf *text, struct place *at, struct arena *scratch,
			      struct hx_error *err)
{
	const char *begin = json_space_end(text->p, text->p + text->n);
	enum hx_code code;

	if (*begin == '[') { /* no item begins like that */
		struct strbuf empty = items->text;

		items->text = *text;
		*text = empty;
		code = take_array(items, strbuf_slice(&items->text), at, scratch, err);
	} else {
		code = take_lines(items, strbuf_slice(text), at, scratch, err);
	}
	at->line = 1;
	return code || items->n > 0 ? code : FAULT(at, err, "there is no item in it");
}

enum hx_code batch_items_read(struct batch_items *items, const char *path, struct hx_error *err)
{
	struct place at = {.file = excerpt_of(slice_str(strcmp(path, "-") == 0 ? "standard input" : path))};
	enum hx_code code;

	*items = (struct batch_items){0};
	strbuf_init(&items->text, FILE_BYTES_MAX);
	LOCAL_STRBUF(text, FILE_BYTES_MAX);
	LOCAL_ARENA(scratch, ITEM_SCRATCH_BYTES_MAX);
	code = question_read_file(path, &text, err);
	return code ? code : take_text(items, &text, &at, &scratch, err);
}

void batch_items_release(struct batch_items *items)
{
	strbuf_release(&items->text);
}
