/*
 * Steps with children: what a run does next at one of them, from what it has read of its children. See run_children.h for the
 * whole picture, and run_plan.h for where this stands in the plan.
 */
#include "base/id.h"
#include "base/json_members.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/run_plan.h"
#include "model/text.h"

#define ROWS_BYTES_MAX (32u << 20)
#define SLICE_BYTES (8u << 20) /* what is made in one move ends with the child that goes beyond */
#define WORDS_BYTES_MAX 4096

/* ---- how a move ends at such a step ---- */

/* The run waits for its children; so many of them are open after the move. */
static void rest_for(struct run_drive *d, const struct answer *answer, const struct run_step *step, int64_t open)
{
	struct run_move *move = &d->move;

	move->next = step->position;
	move->redo = plan_is_standing(d, step->position) ? d->row.redo : 0;
	move->attempt = 1;
	move->started_at = plan_started_at(d, answer, step->position);
	move->awaits = slice_str(RUN_AWAITS_CHILD);
	move->open_children = open;
	move->waits_at = step;
	plan_rest(d, RUN_WAITING);
}

static void run_brood_fail(struct run_drive *d, const struct answer *answer, const struct run_step *step,
			   const char *code, struct slice message)
{
	d->move.attempt = 1;
	d->move.redo = plan_is_standing(d, step->position) ? d->row.redo : 0;
	d->move.started_at = plan_started_at(d, answer, step->position);
	plan_fail(d, code, message, step);
}

static void fail_with(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		      const struct hx_error *err)
{
	run_brood_fail(d, answer, step, hx_code_name(err->code), slice_str(err->detail));
}

/* ---- what children are told ---- */

static void put_row(struct strbuf *rows, int64_t id, struct slice input, const char *scope, struct slice attributes)
{
	strbuf_addf(rows, "%s[%lld,", rows->n > 1 ? "," : "", (long long)id);
	json_quote(input, rows);
	strbuf_add_char(rows, ',');
	if (scope)
		json_quote(slice_str(scope), rows);
	else
		strbuf_add_str(rows, "null");
	strbuf_add_char(rows, ',');
	if (attributes.p)
		json_quote(attributes, rows);
	else
		strbuf_add_str(rows, "null");
	strbuf_add_char(rows, ']');
}

/* What a part sees of the run around it: its input, the state when it begins, and what earlier bodies have saved. */
static enum hx_code make_around(struct run_drive *d, struct slice saved, struct slice *ret_input, struct hx_error *err)
{
	LOCAL_STRBUF(text, RUN_OUTPUTS_BYTES_MAX);

	strbuf_add_str(&text, "{\"input\":");
	strbuf_add_slice(&text, run_input(d));
	strbuf_add_str(&text, ",\"state\":");
	run_write_seen_state(d, d->done, &text);
	strbuf_add_str(&text, ",\"saved\":");
	strbuf_add_slice(&text, saved);
	strbuf_add_char(&text, '}');
	*ret_input = arena_copy(d->arena, strbuf_slice(&text));
	if (text.failed)
		(void)error_set(err, HX_TOO_LARGE, "the state of the run is too large");
	return text.failed ? HX_TOO_LARGE : HX_OK;
}

/* Of a map: its elements from number `from` on, which it has. All others have none. */
static struct json_iter elements_from(const struct run_step *step, struct json array, int64_t from)
{
	struct json_iter it = json_iter_of(array);
	struct json passed;

	for (int64_t i = 0; i < from && step->type == RUN_MAP; i++)
		ASSERT(json_iter_element(&it, &passed));
	return it;
}

/* Of child n; a map's takes the next element. */
static enum hx_code make_input(struct run_drive *d, const struct run_step *step, struct json_iter *items, int64_t n,
			       struct slice saved, struct slice *ret_input, struct hx_error *err)
{
	char index[24];
	struct json item;

	switch (step->type) {
	case RUN_CHILD:
		return run_make_input(d, d->done, step, /* undone= */ NULL, ret_input, err);
	case RUN_MAP:
		snprintf(index, sizeof index, "%lld", (long long)n);
		ASSERT(json_iter_element(items, &item));
		*ret_input = item.raw;
		return step->input ? run_evaluate_item(d, d->done, step->input, *ret_input, slice_str(index), ret_input,
						       err)
				   : HX_OK;
	default:
		return make_around(d, saved, ret_input, err);
	}
}

/* ---- beginning ---- */

/* A few come with the answer; whoever makes more draws them. */
static int64_t child_id(const struct answer *answer, int64_t i)
{
	return i < ANSWER_IDS_MAX ? answer->more_ids[i] : id_next(answer->ids, answer->now);
}

static struct slice child_key(struct run_drive *d, const struct run_step *step)
{
	return slice_str(text_printf(d->arena, "%s/%s/", id_text("run", d->row.subject).text, step->name));
}

static const struct run_machine *newest(const struct run_drive *d, const struct run_step *step)
{
	return d->policy->machine_of(d->policy->context, slice_str(step->workflow), RUN_NEWEST);
}

/* May it be a function's, for which somebody polls? Only the store knows, and it is asked once. */
static bool must_ask(const struct run_drive *d, const struct run_step *step)
{
	const struct run_policy *policy = d->policy;

	return step->workflow && d->polled_of != step && policy->may_be_function && !newest(d, step) &&
	       policy->may_be_function(policy->context, slice_str(step->workflow));
}

static const struct run_machine *function_of(struct run_drive *d, const struct run_step *step)
{
	bool polled = d->polled_of == step && d->polled;

	return polled ? run_function_new(slice_str(step->workflow), d->arena) : NULL;
}

/* Of which definition: of another workflow the newest that this node knows, or a function; else a part of its own. */
static bool find_machine(struct run_drive *d, const struct answer *answer, const struct run_step *step,
			 struct run_brood *brood)
{
	const struct run_definition *part = step->parts_n ? step->parts[0].definition : NULL;

	if (must_ask(d, step)) {
		d->wants_children = step;
		d->wanted = KIDS_POLLED;
		return false;
	}
	brood->machine = d->row.machine;
	brood->sees_around = part && part->sees_around;
	brood->limit_key = part && d->slot.name ? d->slot.key : slice_of(NULL, 0);
	if (step->workflow)
		brood->machine = newest(d, step) ? newest(d, step) : function_of(d, step);
	if (brood->machine)
		return true;
	run_brood_fail(
		d, answer, step, "NOT_FOUND",
		slice_str(text_printf(d->arena,
				      "there is no workflow \"%s\" of kind run, and nobody polls for such a function",
				      step->workflow)));
	return false;
}

/* Branches are parts of their own; of all others one part, or one workflow, serves for every child. */
static const char *scope_of(const struct run_step *step, int64_t n)
{
	return step->parts_n ? step->parts[step->type == RUN_PARALLEL ? n : 0].definition->scope : NULL;
}

/* What a child of another workflow is searched by; a part is not searched for. */
static struct slice describe(struct run_drive *d, const struct run_step *step, struct run_brood *brood,
			     struct slice input)
{
	struct run_spec spec = {.machine = brood->machine, .input = input};

	if (step->workflow)
		run_describe(&spec, d->arena);
	brood->described |= spec.attributes.p != NULL;
	return spec.attributes;
}

/* Children from number `from` on, and the run waits for them and for those that are open already. */
static void run_brood_begin(struct run_drive *d, const struct answer *answer, const struct run_step *step,
			    struct json items, int64_t from, int64_t n, int64_t open, bool more, struct slice saved)
{
	struct run_brood *brood = &d->move.brood;
	struct hx_error err = {0};
	enum hx_code code = HX_OK;
	int64_t made = 0;

	if (d->row.depth >= RUN_DEPTH_MAX) {
		run_brood_fail(d, answer, step, "TOO_DEEP", slice_str("children of children are at most 16 deep"));
		return;
	}
	*brood = (struct run_brood){.step = step, .from = from, .key = child_key(d, step)};
	if (!find_machine(d, answer, step, brood))
		return;
	LOCAL_STRBUF(rows, ROWS_BYTES_MAX);
	/* Once: each look goes through a long list as it is. */
	struct json_iter left = elements_from(step, items, from);
	strbuf_add_char(&rows, '[');
	for (; made < n && rows.n < SLICE_BYTES && !code; made++) {
		int64_t i = from + made;
		struct slice input;

		code = make_input(d, step, &left, i, saved, &input, &err);
		if (!code && input.n > RUN_INPUT_BYTES_MAX && !brood->sees_around)
			code = error_set(&err, HX_TOO_LARGE, "the input of child %lld is too large", (long long)i);
		if (!code)
			put_row(&rows, child_id(answer, made), input, scope_of(step, i),
				describe(d, step, brood, input));
	}
	strbuf_add_char(&rows, ']');
	brood->rows = arena_copy(d->arena, strbuf_slice(&rows));
	brood->n = made;
	d->arena->failed |= rows.failed;
	if (code) {
		brood->rows = slice_of(NULL, 0);
		fail_with(d, answer, step, &err);
	} else {
		/* Counts one that is not made yet: as fewer are open than the run waits for, it is due at once. */
		rest_for(d, answer, step, open + made + (more || made < n));
	}
}

/* ---- outputs ---- */

static struct slice output_of(const struct run_kids *kids, int64_t n)
{
	for (const struct run_kid *kid = kids->first; kid; kid = kid->next)
		if (kid->n == n && kid->output.p)
			return kid->output;
	return slice_str("null");
}

/* [1, {"error": …}, 3] */
static void put_array(const struct run_kids *kids, struct strbuf *out)
{
	strbuf_add_char(out, '[');
	for (const struct run_kid *kid = kids->first; kid; kid = kid->next) {
		strbuf_add_str(out, kid == kids->first ? "" : ",");
		if (slice_is(kid->state, CHILD_DONE)) {
			strbuf_add_slice(out, kid->output);
			continue;
		}
		strbuf_add_str(out, "{\"error\":");
		strbuf_add_slice(out, kid->error.p ? kid->error : slice_str("{\"code\":\"CANCELLED\"}"));
		strbuf_add_char(out, '}');
	}
	strbuf_add_char(out, ']');
}

/* {"pack": …, "bill": …}; of `any` the winner alone. */
static void put_branches(const struct run_kids *kids, const struct run_step *step, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	for (size_t n = 0; n < step->parts_n; n++) {
		if (step->joins_any && (int64_t)n != kids->winner)
			continue;
		strbuf_add_str(out, out->n > 1 ? "," : "");
		json_quote(slice_str(step->parts[n].branch), out);
		strbuf_add_char(out, ':');
		strbuf_add_slice(out, output_of(kids, (int64_t)n));
	}
	strbuf_add_char(out, '}');
}

/* All that had to be done is done. False: what they have put out does not fit. */
static bool end_step(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	const struct run_kids *kids = &d->kids;
	int64_t started = plan_started_at(d, answer, step->position);
	struct slice output;
	LOCAL_STRBUF(text, RUN_OUTPUT_BYTES_MAX);

	if (step->type == RUN_CHILD)
		strbuf_add_slice(&text, output_of(kids, 0));
	else if (step->type == RUN_PARALLEL)
		put_branches(kids, step, &text);
	else if (step->save_as)
		put_array(kids, &text);
	else
		strbuf_add_str(&text, "null");
	output = arena_copy(d->arena, strbuf_slice(&text));
	if (text.failed) {
		run_brood_fail(d, answer, step, "TOO_LARGE",
			       slice_str("what its children have put out is too large together"));
		return false;
	}
	plan_ended(d, answer, step, RUN_STEP_COMPLETED, 1, output, started);
	return true;
}

/* ---- deciding ---- */

static struct slice member(struct slice object, const char *name, struct arena *arena)
{
	struct json value;

	if (!object.p || !json_find(json_trust(object), slice_str(name), &value) || json_type(value) != JSON_STRING)
		return slice_of(NULL, 0);
	return json_string_decode(value, arena);
}

/* The first that failed, in the words that its own run has for it. */
static void fail_by_child(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	struct slice error = slice_of(NULL, 0), code, why;

	for (const struct run_kid *kid = d->kids.first; kid; kid = kid->next)
		if (kid->n == d->kids.failed && slice_is(kid->state, CHILD_FAILED))
			error = kid->error;
	code = member(error, "code", d->arena);
	why = member(error, "message", d->arena);
	LOCAL_STRBUF(words, WORDS_BYTES_MAX);
	strbuf_addf(&words, "child %lld: ", (long long)d->kids.failed);
	if (code.p)
		strbuf_addf(&words, "%.*s: %.*s", SLICE_ARGS(code), SLICE_ARGS(why));
	else
		strbuf_add_str(&words, "it was cancelled");
	run_brood_fail(d, answer, step, "CHILD_FAILED", arena_copy(d->arena, strbuf_slice(&words)));
}

/* Those that are open are to come to an end: the run waits for that. */
static void stop(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *word,
		 int64_t but)
{
	d->move.asking = (struct run_asking){step, word, /* only= */ -1, but};
	rest_for(d, answer, step, d->kids.open);
}

/* Is there one beside the winner that is not cancelled? All are known once none is open. */
static bool has_losers(const struct run_kids *kids)
{
	for (const struct run_kid *kid = kids->first; kid; kid = kid->next)
		if (kid->n != kids->winner && !slice_is(kid->state, CHILD_CANCELLED))
			return true;
	return kids->open > 0;
}

/* Is there one that may still decide: under way, or of a later slice? */
static bool may_win(const struct run_kids *kids, const struct run_step *step)
{
	return step->joins_any && (kids->open || kids->begun < (int64_t)step->parts_n);
}

/* It cannot end well any more: nothing is begun, what is under way comes to its end, and then it fails. */
static bool end_badly(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	if (d->kids.open)
		stop(d, answer, step, CHILD_ASKED_FAIL, /* but= */ -1);
	else
		fail_by_child(d, answer, step);
	return false;
}

void plan_stop_children(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *code,
			struct slice message)
{
	if (d->kids.step != step) {
		d->wants_children = step;
		d->wanted = KIDS_COUNT;
		d->wanted_of = 0;
	} else if (d->kids.open) { /* mutant: failed-with-open-children -> } else if (0) { */
		stop(d, answer, step, CHILD_ASKED_FAIL, /* but= */ -1);
	} else {
		run_brood_fail(d, answer, step, code, message);
	}
}

#define ITEMS_ALL (RUN_MAP_ITEMS_MAX + 1)

/*
 * How many children there are to be; of a long list, counted up to at_most. False: that is not to be known, and the move has ended with
 * it.
 */
static bool count_items(struct run_drive *d, const struct answer *answer, const struct run_step *step, int64_t at_most,
			struct json *ret_items, int64_t *ret_n)
{
	struct json_iter it;
	struct json item;
	struct hx_error err;
	struct slice value;

	*ret_items = json_trust(slice_str("[]"));
	*ret_n = step->type == RUN_PARALLEL ? (int64_t)step->parts_n : 1;
	if (step->type != RUN_MAP)
		return true;
	if (run_evaluate(d, d->done, step->over, &value, &err)) {
		fail_with(d, answer, step, &err);
		return false;
	}
	*ret_items = json_trust(value);
	if (json_type(*ret_items) != JSON_ARRAY) {
		run_brood_fail(d, answer, step, "VALIDATION_ERROR", slice_str("over is not an array"));
		return false;
	}
	it = json_iter_of(*ret_items);
	for (*ret_n = 0; *ret_n < at_most && json_iter_element(&it, &item); (*ret_n)++)
		;
	if (*ret_n > RUN_MAP_ITEMS_MAX) {
		run_brood_fail(d, answer, step, "TOO_LARGE", slice_str("over has more than 100000 items"));
		return false;
	}
	return true;
}

static int64_t room_of(const struct run_drive *d, const struct run_step *step, int64_t of)
{
	int64_t left = of - d->kids.begun;
	int64_t room = step->type == RUN_MAP ? step->concurrency - d->kids.open : RUN_BRANCHES_MAX;

	room = room < RUN_CHILDREN_SLICE ? room : RUN_CHILDREN_SLICE;
	return left < room ? left : room;
}

static bool pass_all(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	const struct run_kids *kids = &d->kids;
	struct json items;
	int64_t of, n;

	if (step->joins_any && kids->winner >= 0 && has_losers(kids)) { /* mutant: losers-left -> if (0) { */
		stop(d, answer, step, CHILD_ASKED_CANCEL, kids->winner);
		return false;
	}
	if (step->joins_any && kids->winner >= 0)
		return end_step(d, answer, step);
	if (kids->failed >= 0 && !step->collects && !may_win(kids, step))
		return end_badly(d, answer, step);
	/* Whether there are more than can be begun now is enough, once it is known that there are not too many. */
	if (!count_items(d, answer, step, kids->begun ? kids->begun + RUN_CHILDREN_SLICE + 1 : ITEMS_ALL, &items, &of))
		return false;
	if (kids->bytes > RUN_OUTPUT_BYTES_MAX && !step->joins_any && (kids->begun < of || !kids->open)) {
		if (kids->open)
			stop(d, answer, step, CHILD_ASKED_FAIL, /* but= */ -1);
		else
			run_brood_fail(d, answer, step, "TOO_LARGE",
				       slice_str("what its children have put out is too large together"));
		return false;
	}
	n = room_of(d, step, of);
	if (n > 0)
		run_brood_begin(d, answer, step, items, kids->begun, n, kids->open,
				kids->begun + n < of && (step->type != RUN_MAP || kids->open + n < step->concurrency),
				slice_str("{}"));
	else if (kids->open)
		rest_for(d, answer, step, kids->open);
	else
		return end_step(d, answer, step);
	return false;
}

/* Once more, unless the last one has brought about what was waited for. */
static bool pass_repeat(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	const struct run_kids *kids = &d->kids;
	struct slice saved = output_of(kids, kids->begun - 1), value;
	const struct run_kid *last = kids->first; /* it was read alone */
	struct hx_error err;

	if (kids->begun == 0) {
		run_brood_begin(d, answer, step, json_trust(slice_str("[]")), 0, 1, 0, /* more= */ false,
				slice_str("{}"));
		return false;
	}
	if (kids->open) { /* mutant: body-beside-body -> if (0) { */
		rest_for(d, answer, step, kids->open);
		return false;
	}
	if (kids->failed >= 0)
		return end_badly(d, answer, step);
	if (run_evaluate_over(d, d->done, saved, step->until, &value, &err)) {
		fail_with(d, answer, step, &err);
		return false;
	}
	if (!slice_is(value, "null") && !slice_is(value, "false")) {
		plan_ended(d, answer, step, RUN_STEP_COMPLETED, kids->begun, saved,
			   plan_started_at(d, answer, step->position));
		return true;
	}
	if (kids->begun >= step->iterations_max) {
		run_brood_fail(d, answer, step, "MAX_REACHED", slice_str("it was repeated as often as max allows"));
		return false;
	}
	if (last && plan_later(last->completed_at, step->every_ms) > plan_now_ms(d, answer)) {
		rest_for(d, answer, step, 0);
		d->move.awaits = slice_of(NULL, 0);
		d->move.wait_until = d->move.due_at = plan_later(last->completed_at, step->every_ms);
		return false;
	}
	run_brood_begin(d, answer, step, json_trust(slice_str("[]")), kids->begun, 1, 0, /* more= */ false, saved);
	return false;
}

/* They are read, and then it is planned anew. */
static bool want(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	struct json items;

	d->wanted_of = 0;
	d->wanted = step->type == RUN_REPEAT                  ? KIDS_LAST
		    : step->type == RUN_MAP && !step->save_as ? KIDS_COUNT
		    : step->joins_any                         ? KIDS_BEGUN
							      : KIDS_ALL;
	if (d->wanted != KIDS_ALL || count_items(d, answer, step, ITEMS_ALL, &items, &d->wanted_of))
		d->wants_children = step;
	return false;
}

bool plan_children(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	if (!plan_is_standing(d, step->position)) {
		d->kids = (struct run_kids){.step = step, .failed = -1, .winner = -1, .standing = -1};
	} else if (d->kids.step != step) {
		return want(d, answer, step);
	}
	return step->type == RUN_REPEAT ? pass_repeat(d, answer, step) : pass_all(d, answer, step);
}

/* ---- going back ---- */

bool plan_undo_children(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	if (d->kids.step != step) {
		d->wants_children = step;
		d->wanted = KIDS_COUNT;
		return false;
	}
	if (d->kids.standing < 0) /* mutant: undone-before-children -> if (d->kids.open == 0) */
		return true;
	d->move.asking = (struct run_asking){step, CHILD_ASKED_CANCEL, /* only= */ -1, /* but= */ -1};
	if (step->type == RUN_REPEAT)
		d->move.asking.only = d->kids.standing; /* mutant: bodies-undone-at-once -> ; */
	rest_for(d, answer, step, d->kids.open ? d->kids.open : 1);
	plan_carry_words(d);
	return false;
}
