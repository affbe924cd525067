/* See search.h: the plan, and what is made of the rows. The statements are search_sql.c. */
#include "flow/search.h"

#include <string.h>

#include "base/utf8.h"
#include "flow/search_parts.h"

#define TOP INT64_MAX
#define BOTTOM 0 /* ids are above it */
#define LAST "~" /* values are below it */

/* ---- ranges ---- */

static void set_from(struct search_range *range, struct slice value, int64_t id)
{
	memcpy(range->from, value.p, value.n);
	range->from_n = value.n;
	range->from_id = id;
}

static void set_to(struct search_range *range, struct slice value, int64_t id)
{
	memcpy(range->to, value.p, value.n);
	range->to_n = value.n;
	range->to_id = id;
}

/* The first text after all that begin with this one, whose first letter is the tag: the last character that has a next one gets it. */
static struct slice next_text(struct slice text, char *room)
{
	size_t n = text.n;
	uint32_t c;

	while (n > 1) {
		size_t start = n - 1, bytes;

		while (start > 1 && utf8_continues((unsigned char)text.p[start]))
			start--;
		bytes = utf8_sequence(text.p + start, text.p + n);
		c = bytes ? utf8_decode(text.p + start, (unsigned)bytes) : 0x10ffff;
		if (c < 0x10ffff) {
			memcpy(room, text.p, start);
			c = c + 1 == 0xd800 ? 0xe000 : c + 1;
			return slice_of(room, start + utf8_encode(c, room + start));
		}
		n = start;
	}
	room[0] = (char)(text.p[0] + 1);
	return slice_of(room, 1);
}

static bool is_open(enum where_op op)
{
	return op == WHERE_LT || op == WHERE_LE || op == WHERE_GT || op == WHERE_GE;
}

/* What passes the test; false: that is no range. */
static bool range_of(const struct where_test *test, struct search_range *range)
{
	struct slice value = test->values[0].sortable;
	char room[SEARCH_VALUE_BYTES], after[1];

	if (test->type != WHERE_ATTRIBUTE || !value.p ||
	    (test->op != WHERE_EQ && test->op != WHERE_STARTS && !is_open(test->op)))
		return false;
	after[0] = (char)(value.p[0] + 1);
	*range = (struct search_range){.name = test->name, .one = test->op == WHERE_EQ, .count = -1};
	set_from(range, value, test->op == WHERE_GT ? TOP : BOTTOM);
	set_to(range, value, test->op == WHERE_LT ? BOTTOM : TOP);
	if (test->op == WHERE_GT || test->op == WHERE_GE)
		set_to(range, slice_of(after, 1), BOTTOM);
	else if (test->op == WHERE_LT || test->op == WHERE_LE)
		set_from(range, slice_of(value.p, 1), BOTTOM);
	else if (test->op == WHERE_STARTS)
		set_to(range, next_text(value, room), BOTTOM);
	return true;
}

static int compare_place(struct slice a, int64_t a_id, struct slice b, int64_t b_id)
{
	int order = slice_compare(a, b);

	return order ? order : (a_id > b_id) - (a_id < b_id);
}

static struct slice from_of(const struct search_range *range)
{
	return slice_of(range->from, range->from_n);
}

static struct slice to_of(const struct search_range *range)
{
	return slice_of(range->to, range->to_n);
}

static struct search_bounds bounds_of(const struct search_range *range)
{
	return (struct search_bounds){range->name, from_of(range), to_of(range), range->from_id, range->to_id};
}

/* What is in both. */
static void narrow(struct search_range *range, const struct search_range *by)
{
	if (compare_place(from_of(by), by->from_id, from_of(range), range->from_id) > 0)
		set_from(range, from_of(by), by->from_id);
	if (compare_place(to_of(by), by->to_id, to_of(range), range->to_id) < 0)
		set_to(range, to_of(by), by->to_id);
	range->one |= by->one;
}

static struct search_range *range_named(struct search *s, struct slice name)
{
	for (size_t i = 0; i < s->ranges_n; i++)
		if (slice_eq(s->ranges[i].name, name))
			return &s->ranges[i];
	return NULL;
}

static void add_range(struct search *s, const struct where_test *test)
{
	struct search_range range;
	struct search_range *same;

	if (!range_of(test, &range))
		return;
	same = range_named(s, range.name);
	if (same)
		narrow(same, &range);
	else
		s->ranges[s->ranges_n++] = range;
}

/* ---- the plan ---- */

static void walk(struct search *s, const struct search_range *range, enum search_by by)
{
	s->by = by;
	s->range = *range;
}

/* All values of the attribute that it is ordered by. */
static struct search_range whole(struct slice name)
{
	struct search_range range = {.name = name, .count = -1};

	set_from(&range, slice_str(""), BOTTOM);
	set_to(&range, slice_str(LAST), TOP);
	return range;
}

static void walk_all(struct search *s)
{
	s->by = s->workflow.n ? SEARCH_WORKFLOW : s->parked ? SEARCH_PARKED : SEARCH_ALL;
}

/* What is done where no range says enough. */
static void walk_order(struct search *s)
{
	const struct search_range *range = range_named(s, s->order);
	struct search_range all = whole(s->order);

	if (s->order.n)
		walk(s, range ? range : &all, SEARCH_ATTRIBUTE);
	else
		walk_all(s);
}

/* True: there is at most one, or no range to choose from but that of its order. */
static bool is_chosen(struct search *s)
{
	if (s->by == SEARCH_ONE || s->by == SEARCH_KEY)
		return true;
	walk_order(s);
	return s->ranges_n == (s->order.n && range_named(s, s->order) ? 1 : 0);
}

/* Conditions on fields that have an index. */
static void take_field(struct search *s, const struct where_test *test)
{
	const char *key = s->of == WHERE_ENTITY ? "id" : "key"; /* what callers have given it */
	struct slice text = test->values[0].sortable;

	if (test->op != WHERE_EQ || test->type == WHERE_ATTRIBUTE)
		return;
	if (slice_is(test->name, "id") && test->type == WHERE_ID) {
		s->one = test->values[0].number;
		s->by = SEARCH_ONE;
	} else if (s->of == WHERE_JOB) { /* their lists are of all, or of those that people look for */
		s->parked |= slice_is(test->name, "status") && slice_is(text, "sPARKED");
	} else if (slice_is(test->name, key) && text.p && s->by != SEARCH_ONE) {
		s->key = slice_from(text, 1);
		s->by = SEARCH_KEY;
	} else if (slice_is(test->name, "workflow") && text.p && !s->workflow.n) {
		s->workflow = slice_from(text, 1);
	}
}

bool search_begin(struct search *s)
{
	const struct where_test *tests[WHERE_CONJUNCTS_MAX], *test;
	size_t n = s->where ? where_conjuncts(s->where, tests) : 0, at = 0;

	s->by = SEARCH_ALL;
	s->ranges_n = s->unknown_n = 0;
	for (size_t i = 0; i < n; i++) {
		take_field(s, tests[i]);
		add_range(s, tests[i]);
	}
	while (s->where && s->known && s->unknown_n < WHERE_CONJUNCTS_MAX &&
	       (test = where_unknown(s->where, s->known, &at)))
		s->unknown[s->unknown_n++] = test;
	return !is_chosen(s) || s->unknown_n > 0;
}

void search_build_probe(const struct search *s, struct unit *unit)
{
	for (size_t i = 0; i < s->ranges_n; i++) {
		struct search_bounds bounds = bounds_of(&s->ranges[i]);

		search_add_count(unit, s, &bounds);
	}
	for (size_t i = 0; i < s->unknown_n; i++)
		search_add_name(unit, s, s->unknown[i]->name);
}

/* Can it be walked in the order that is wanted, or is it few enough to be sorted? */
static bool is_fit(const struct search *s, const struct search_range *range)
{
	return range->count <= SEARCH_GATHER_MAX || (s->order.n ? slice_eq(range->name, s->order) : range->one);
}

/* The fewest of those. */
static void choose(struct search *s)
{
	const struct search_range *best = NULL;

	for (size_t i = 0; i < s->ranges_n; i++) {
		const struct search_range *range = &s->ranges[i];

		if (is_fit(s, range) && (!best || range->count < best->count))
			best = range;
	}
	if (!best || (s->order.n && slice_eq(best->name, s->order)))
		walk_order(s);
	else
		walk(s, best, best->one && !s->order.n ? SEARCH_ATTRIBUTE : SEARCH_GATHER);
}

const struct where_test *search_take_probe(struct search *s, const struct unit_result *result)
{
	for (size_t i = 0; i < s->ranges_n; i++)
		s->ranges[i].count = db_cell(&result->rows[i], 0, 0)->i;
	for (size_t i = 0; i < s->unknown_n; i++)
		if (result->rows[s->ranges_n + i].n == 0)
			return s->unknown[i];
	s->unknown_n = 0;
	if (!is_chosen(s))
		choose(s);
	return NULL;
}

/* ---- slices ---- */

/* What is left of the range after the place where the last slice has ended. Its texts are the search's. */
static struct search_bounds rest_of(const struct search *s)
{
	struct search_bounds rest = bounds_of(&s->range);
	struct slice value = slice_of(s->after.value, s->after.value_n);

	if (!s->after.id)
		return rest;
	if (!s->order.n) /* of one value: by id alone */
		value = rest.from;
	if (s->up && compare_place(value, s->after.id, rest.from, rest.from_id) > 0) {
		rest.from = value;
		rest.from_id = s->after.id;
	} else if (!s->up && compare_place(value, s->after.id, rest.to, rest.to_id) < 0) {
		rest.to = value;
		rest.to_id = s->after.id;
	}
	return rest;
}

void search_build(const struct search *s, struct unit *unit)
{
	struct search_bounds rest = s->by == SEARCH_ATTRIBUTE ? rest_of(s) : bounds_of(&s->range);
	int64_t after = s->after.id ? s->after.id : s->up ? BOTTOM : TOP;
	struct slice value = s->after.id ? slice_of(s->after.value, s->after.value_n) : slice_str(s->up ? "" : LAST);

	if (s->by == SEARCH_ATTRIBUTE) {
		search_add_walk(unit, s, &rest);
	} else if (s->by == SEARCH_GATHER) {
		if (s->order.n)
			search_add_sort(unit, s, &rest, value, after);
		else
			search_add_gather(unit, s, &rest, after);
		search_add_count(unit, s, &rest);
	} else {
		search_add_list(unit, s, after);
	}
}

bool search_take(struct search *s, const struct unit_result *result, struct search_slice *ret)
{
	ret->rows = &result->rows[0];
	ret->last = s->by == SEARCH_ONE || s->by == SEARCH_KEY || ret->rows->n < SEARCH_SLICE;
	if (s->by != SEARCH_GATHER || db_cell(&result->rows[1], 0, 0)->i <= SEARCH_GATHER_MAX)
		return true;
	walk_order(s); /* there have come more of them meanwhile */
	return false;
}

static struct slice text_of(const struct db_value *cell)
{
	return cell->type == DB_NULL ? slice_of(NULL, 0) : cell->s;
}

static int64_t int_of(const struct db_value *cell)
{
	return cell->type == DB_NULL ? 0 : cell->i;
}

struct where_subject search_subject(const struct db_rows *rows, size_t i)
{
	const struct db_value *cells = &rows->cells[i * rows->columns];
	struct slice attributes = text_of(&cells[FOUND_ATTRIBUTES]);

	return (struct where_subject){
		.id = cells[FOUND_ID].i,
		.status = text_of(&cells[FOUND_STATUS]),
		.workflow = text_of(&cells[FOUND_WORKFLOW]),
		.key = text_of(&cells[FOUND_KEY]),
		.requester = text_of(&cells[FOUND_REQUESTER]),
		.account = text_of(&cells[FOUND_ACCOUNT]),
		.queue = text_of(&cells[FOUND_QUEUE]),
		.name = text_of(&cells[FOUND_NAME]),
		.parent = int_of(&cells[FOUND_PARENT]),
		.created_at = int_of(&cells[FOUND_CREATED_AT]),
		.started_at = int_of(&cells[FOUND_STARTED_AT]),
		.completed_at = int_of(&cells[FOUND_COMPLETED_AT]),
		.updated_at = int_of(&cells[FOUND_UPDATED_AT]),
		.total = int_of(&cells[FOUND_TOTAL]),
		.held = int_of(&cells[FOUND_HELD]) != 0,
		.attributes = json_trust(attributes),
	};
}

bool search_row(struct search *s, const struct db_rows *rows, size_t i)
{
	struct where_subject subject = search_subject(rows, i);
	struct slice value = text_of(db_cell(rows, i, FOUND_VALUE));

	s->after.id = subject.id;
	s->after.value_n = value.n;
	if (value.n)
		memcpy(s->after.value, value.p, value.n);
	if (s->status.n && !slice_eq(s->status, subject.status))
		return false;
	if (s->workflow.n && !slice_eq(s->workflow, subject.workflow))
		return false;
	if (s->parent && s->parent != subject.parent)
		return false;
	return !s->where || where_holds(s->where, &subject);
}
