/* See bulk_select.h. */
#include "flow/bulk_select.h"

#include "flow/answer.h"
#include "flow/entity.h"
#include "flow/shapes.h"
#include "task/states.h"

#define IDS_BYTES_MAX (64u << 10)

enum {
	SELECT_NEW,
	SELECT_CREATING,
	SELECT_FINDING,
	SELECT_TAKING,
	SELECT_PROBING,
	SELECT_WALKING,
	SELECT_FREEZING,
	SELECT_DONE
};

const struct where *bulk_where(const struct bulk_spec *spec, struct arena *arena)
{
	const struct bulk_noun *noun = bulk_noun(spec->kind);
	const struct where *where = NULL;

	if (!noun) /* made by a node that knows more */
		return NULL;
	struct where_names names = {noun->of, noun->statuses};
	return where_parse(spec->condition, &names, arena, /* err= */ NULL, /* ret_column= */ NULL, &where) ? NULL
													    : where;
}

/* Of all that matches; empty: the condition does not say. */
static struct slice workflow_of(const struct where *where)
{
	const struct where_test *tests[WHERE_CONJUNCTS_MAX];
	size_t n = where_conjuncts(where, tests);

	for (size_t i = 0; i < n; i++)
		if (tests[i]->op == WHERE_EQ && slice_is(tests[i]->name, "workflow") && tests[i]->values[0].sortable.p)
			return slice_from(tests[i]->values[0].sortable, 1);
	return slice_str("");
}

struct search bulk_search(const struct bulk_spec *spec, const struct where *where)
{
	const struct bulk_noun *noun = bulk_noun(spec->kind);
	struct search search = {.of = noun->of, .workspace = spec->workspace, .where = where, .up = true};

	if (noun->subject_kind) {
		search.kind = noun->subject_kind();
	} else {
		search.workflow = workflow_of(where);
		search.kind = entity_kind(search.workflow);
	}
	return search;
}

static bool select_failed(struct bulk_select *s, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_FAILED)
		task_end(&s->task, flow_failure(answer->result));
	else if (verdict == UNIT_UNKNOWN)
		task_end(&s->task, HX_OUTCOME_UNKNOWN);
	return verdict == UNIT_FAILED || verdict == UNIT_UNKNOWN;
}

static void select_begin(struct bulk_select *s)
{
	task_go(&s->task, search_begin(&s->search) ? SELECT_PROBING : SELECT_WALKING);
}

static void select_start(struct bulk_select *s, const struct answer *answer)
{
	s->stamp = flow_stamp(answer);
	if (s->dry) {
		select_begin(s);
	} else if (s->spec.verb.p) {
		s->spec.subject = answer->more_ids[0];
		/* Names are looked for before anything is written. */
		task_go(&s->task, search_begin(&s->search) ? SELECT_PROBING : SELECT_CREATING);
	} else {
		task_go(&s->task, SELECT_TAKING);
	}
}

static void select_created(struct bulk_select *s, const struct answer *answer)
{
	if (select_failed(s, answer))
		return;
	if (answer->result->verdict != UNIT_WON) {
		task_go(&s->task, SELECT_FINDING);
		return;
	}
	s->row = (struct bulk_row){.spec = s->spec, .state = slice_str(BULK_SELECTING), .created_at = s->stamp.at.ms};
	task_go(&s->task, SELECT_WALKING);
}

static void select_found(struct bulk_select *s, const struct answer *answer)
{
	if (select_failed(s, answer))
		return;
	s->existed = true;
	task_end(&s->task, bulk_row_take(&answer->result->rows[0], s->arena, &s->row) ? HX_OK : HX_CONCURRENCY_ERROR);
}

static void select_taken(struct bulk_select *s, const struct answer *answer)
{
	const struct where *where;

	if (select_failed(s, answer))
		return;
	if (answer->result->verdict != UNIT_WON || !bulk_row_take(&answer->result->rows[1], s->arena, &s->row)) {
		task_end(&s->task, HX_CLAIM_FAILED);
		return;
	}
	if (!slice_is(s->row.state, BULK_SELECTING)) {
		task_end(&s->task, HX_OK);
		return;
	}
	where = bulk_where(&s->row.spec, s->arena);
	if (!where) {
		task_end(&s->task, HX_INTERNAL);
		return;
	}
	s->search = bulk_search(&s->row.spec, where);
	s->search.after.id = s->row.after_id;
	select_begin(s);
}

static void select_probed(struct bulk_select *s, const struct answer *answer)
{
	if (select_failed(s, answer))
		return;
	s->unknown = search_take_probe(&s->search, answer->result);
	if (s->unknown) {
		task_end(&s->task, HX_BAD_QUERY);
		return;
	}
	s->stamp = flow_stamp(answer);
	task_go(&s->task, s->dry || s->row.state.p ? SELECT_WALKING : SELECT_CREATING);
}

/* Those of the slice that match, and are not younger than the bulk. */
static bool select_collect(struct bulk_select *s, const struct search_slice *slice)
{
	struct bulk_slice *to = &s->slice;
	struct strbuf ids;

	*to = (struct bulk_slice){.subject = s->row.spec.subject,
				  .from = s->search.after.id,
				  .first = s->row.selected,
				  .last = slice->last};
	strbuf_init(&ids, IDS_BYTES_MAX);
	strbuf_add_char(&ids, '[');
	for (size_t i = 0; i < slice->rows->n && !(to->last && !slice->last); i++) {
		if (!search_row(&s->search, slice->rows, i))
			continue;
		if (to->subject && s->search.after.id >= to->subject) {
			to->last = true;
			break;
		}
		strbuf_addf(&ids, "%s%lld", to->n++ ? "," : "", (long long)s->search.after.id);
	}
	strbuf_add_char(&ids, ']');
	to->to = s->search.after.id;
	to->ids = arena_keep(s->arena, &ids);
	return to->ids.p != NULL;
}

static void select_walked(struct bulk_select *s, const struct answer *answer)
{
	struct search_slice slice;

	if (select_failed(s, answer))
		return;
	if (!search_take(&s->search, answer->result, &slice)) {
		task_go(&s->task, SELECT_WALKING);
		return;
	}
	s->stamp = flow_stamp(answer);
	if (!select_collect(s, &slice)) {
		task_end(&s->task, HX_NO_MEMORY);
	} else if (!s->dry) {
		task_go(&s->task, SELECT_FREEZING);
	} else {
		s->row.selected += s->slice.n;
		if (s->slice.last)
			task_end(&s->task, HX_OK);
		else
			task_go(&s->task, SELECT_WALKING);
	}
}

static void select_frozen(struct bulk_select *s, const struct answer *answer)
{
	if (select_failed(s, answer))
		return;
	if (answer->result->verdict != UNIT_WON) { /* another has come further, or it is cancelled: whoever asks sees */
		task_end(&s->task, HX_CLAIM_FAILED);
		return;
	}
	s->row.selected += s->slice.n;
	s->row.after_id = s->slice.to;
	if (s->slice.last) {
		s->row.state = slice_str(BULK_RUNNING);
		task_end(&s->task, HX_OK);
	} else {
		task_go(&s->task, SELECT_WALKING);
	}
}

static void build_take(const struct bulk_select *s, struct unit *unit)
{
	bulk_take(unit, s->spec.subject);
	bulk_read(unit, slice_of(NULL, 0), s->spec.subject);
}

TASK_UNIT(build_create, struct bulk_select, s, bulk_create(unit, &s->stamp, &s->spec));
TASK_UNIT(build_find, struct bulk_select, s, bulk_read_key(unit, s->spec.workspace, s->spec.key));
TASK_UNIT(build_probe, struct bulk_select, s, search_build_probe(&s->search, unit));
TASK_UNIT(build_walk, struct bulk_select, s, search_build(&s->search, unit));
TASK_UNIT(build_freeze, struct bulk_select, s, bulk_freeze(unit, &s->slice));

static const TASK_STATES(struct bulk_select) select_states[] = {
	[SELECT_NEW] = {"new", select_start},
	[SELECT_CREATING] = {"creating", select_created, build_create},
	[SELECT_FINDING] = {"finding it by its key", select_found, build_find},
	[SELECT_TAKING] = {"taking it", select_taken, build_take},
	[SELECT_PROBING] = {"probing", select_probed, build_probe},
	[SELECT_WALKING] = {"walking", select_walked, build_walk},
	[SELECT_FREEZING] = {"writing the slice", select_frozen, build_freeze},
	[SELECT_DONE] = {"done"},
};

TASK_KIND_STAMPED(select_kind, "selection", struct bulk_select, select_states);

void bulk_select_init(struct bulk_select *s)
{
	s->row = (struct bulk_row){0};
	s->existed = false;
	s->unknown = NULL;
	task_init(&s->task, &select_kind, /* topic= */ 0);
}
