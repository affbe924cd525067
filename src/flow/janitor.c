/* See janitor.h. */
#include "flow/janitor.h"

#include <stdio.h>

#include "flow/answer.h"
#include "flow/entity.h"
#include "flow/shapes.h"
#include "flow/slot.h"
#include "task/states.h"

enum {
	JANITOR_NEW,
	JANITOR_SLEEPING,
	JANITOR_SCANNING,
	JANITOR_LOOKING,
	JANITOR_REVERTING,
	JANITOR_HOLDING,
	JANITOR_DONE,
};

static int64_t page_size(const struct janitor *j)
{
	return j->budget < JANITOR_PAGE ? j->budget : JANITOR_PAGE;
}

static const struct janitor_rule *rule_of(const struct janitor_rules *rules, int64_t kind, struct slice status)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->rules[i].kind == kind && slice_is(status, rules->rules[i].claim_into))
			return &rules->rules[i];
	return NULL;
}

/* The next claim of the page, or the next page, or the end. */
static void janitor_go_on(struct janitor *j, const struct answer *answer)
{
	if (j->page_at < j->page_n) {
		j->stamp = flow_stamp(answer);
		task_go(&j->task, j->page[j->page_at].rule->machine ? JANITOR_LOOKING : JANITOR_REVERTING);
	} else if (!j->more || j->budget == 0 || j->handed_n) {
		task_end(&j->task, HX_OK);
	} else {
		task_go(&j->task, JANITOR_SCANNING);
	}
}

static void take_page(struct janitor *j, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		task_end(&j->task, HX_STORE_UNAVAILABLE);
		return;
	}
	j->more = (int64_t)rows->n == page_size(j);
	j->page_n = j->page_at = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct janitor_rule *rule = rule_of(j->rules, db_cell(rows, i, 1)->i, db_cell(rows, i, 2)->s);
		struct janitor_claim claim = {db_cell(rows, i, 0)->i, db_cell(rows, i, 3)->i, rule};

		j->cursor = claim.subject;
		j->budget--;
		if (!rule)
			j->unruled++;
		else if (rule->hand_over)
			j->handed[j->handed_n++] = claim;
		else
			j->page[j->page_n++] = claim;
	}
	janitor_go_on(j, answer);
}

/*
 * What the step that claimed wants to happen. One that is gone from the definition in force, or claims another status by now,
 * cannot say: that is for a person.
 */
static enum on_unknown wish_of(const struct janitor_rule *rule, const struct db_rows *rows)
{
	const struct workflow *w = rule->machine->workflow;
	struct slice requester = db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s;
	const struct step *step = workflow_step(w, db_cell(rows, 0, ENTITY_CLAIM_STEP)->s,
						db_cell(rows, 0, ENTITY_CLAIM_FROM)->s, requester);
	const struct step_view *view;

	if (!step)
		return UNKNOWN_HOLD; /* mutant: gone-step-reverted -> return UNKNOWN_REVERT; */
	view = workflow_view(w, step, requester);
	if (!view->claim_into || strcmp(view->claim_into, rule->claim_into) != 0)
		return UNKNOWN_HOLD; /* mutant: other-claim-reverted -> return view->on_unknown; */
	return view->on_unknown;
}

#define LINE_SLOT 1 /* of a look */

static void take_looked(struct janitor *j, const struct answer *answer)
{
	const struct janitor_rule *rule = j->page[j->page_at].rule;
	const struct db_rows *rows = &answer->result->rows[0];
	enum on_unknown wish;

	if (answer->result->verdict != UNIT_WON) {
		task_end(&j->task, HX_STORE_UNAVAILABLE);
		return;
	}
	wish = rows->n ? wish_of(rule, rows) : UNKNOWN_REVERT;
	j->name[0] = '\0';
	if (rows->n) {
		snprintf(j->name, sizeof j->name, "%.*s", SLICE_ARGS(db_cell(rows, 0, ENTITY_NAME)->s));
		j->version = db_cell(rows, 0, ENTITY_VERSION)->i;
	}
	j->slot = slot_held(&answer->result->rows[LINE_SLOT]);
	j->stamp = flow_stamp(answer);
	wall_time_format(j->stamp.at, j->stamp_text);
	if (wish == UNKNOWN_PROBE) {
		j->handed[j->handed_n++] = j->page[j->page_at++];
		janitor_go_on(j, answer);
	} else {
		task_go(&j->task, wish == UNKNOWN_HOLD ? JANITOR_HOLDING : JANITOR_REVERTING);
	}
}

static void note_ended(struct janitor *j)
{
	struct janitor_ended *ended;

	if (!j->ended || j->ended_n == JANITOR_TOLD)
		return;
	ended = &j->ended[j->ended_n++];
	ended->claim = j->page[j->page_at];
	memcpy(ended->name, j->name, sizeof j->name);
}

static void janitor_take_start(struct janitor *j, const struct answer *answer)
{
	task_go(&j->task, answer->mono.ns < j->start_at.ns ? JANITOR_SLEEPING : JANITOR_SCANNING);
}

/* Lost: somebody was first. Failed or unknown: the next sweep sees what is left. */
static void take_ended(struct janitor *j, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON) {
		j->reverted += j->task.at == JANITOR_REVERTING;
		j->held += j->task.at == JANITOR_HOLDING;
		note_ended(j);
	}
	j->page_at++;
	janitor_go_on(j, answer);
}

/* page_at stands after the page. */
TASK_UNIT(build_scan, struct janitor, j, subject_scan_stuck(unit, j->cursor, page_size(j)));

static void build_look(const struct janitor *j, struct unit *unit)
{
	entity_read_subject(unit, j->page[j->page_at].subject);
	ASSERT(unit->lines_n == LINE_SLOT);
	slot_read_held(unit, j->page[j->page_at].subject);
}

/* Of the action's limits: the slot is the claim's. */
static void leave_slot(const struct janitor *j, struct unit *unit, int64_t subject)
{
	if (!j->slot.name)
		return;
	slot_lock(unit, &j->slot);
	slot_release(unit, &j->slot, subject);
}

static void build_hold(const struct janitor *j, struct unit *unit)
{
	const struct janitor_claim *claim = &j->page[j->page_at];

	subject_hold(unit, claim->subject, claim->fence, /* if_past= */ true);
	leave_slot(j, unit, claim->subject); /* mutant: held-with-a-slot -> ; */
}

static void build_revert(const struct janitor *j, struct unit *unit)
{
	const struct janitor_claim *claim = &j->page[j->page_at];
	const struct janitor_rule *rule = claim->rule;
	struct move move = {claim->subject, rule->claim_into, rule->revert_to};
	struct table_row row = {rule->machine ? rule->machine->table : NULL, slice_str(j->name), j->version,
				slice_str(j->stamp_text)};

	if (row.table)
		entity_table_revert(unit, &j->stamp, &row, &move, claim->fence);
	else
		subject_revert(unit, &j->stamp, &move, claim->fence);
	leave_slot(j, unit, claim->subject); /* mutant: revert-keeps-a-slot -> ; */
	subject_add_note(unit, claim->subject,
			 &(struct history_note){.reason = slice_str("reverted: its claim had lapsed"),
						.by = slice_str("janitor")});
}

static const TASK_STATES(struct janitor) janitor_states[] = {
	[JANITOR_NEW] = {"new", janitor_take_start},
	[JANITOR_SLEEPING] = {"sleeping", janitor_take_start, .until = offsetof(struct janitor, start_at)},
	[JANITOR_SCANNING] = {"scanning", take_page, build_scan},
	[JANITOR_LOOKING] = {"looking who claimed", take_looked, build_look},
	[JANITOR_REVERTING] = {"reverting", take_ended, build_revert},
	[JANITOR_HOLDING] = {"holding", take_ended, build_hold},
	[JANITOR_DONE] = {"done"},
};

/* What it has looked up is of the claim that it ends, and what it has dealt with is gone from the page. */
static void janitor_forget(void *copy)
{
	struct janitor *j = copy;

	if (j->task.at != JANITOR_REVERTING && j->task.at != JANITOR_HOLDING) {
		j->stamp = (struct stamp){0};
		memset(j->name, 0, sizeof j->name);
		j->version = 0;
		j->slot = (struct slot){0};
	}
	j->page_n -= j->page_at;
	memmove(j->page, j->page + j->page_at, j->page_n * sizeof *j->page);
	memset(j->page + j->page_n, 0, (JANITOR_PAGE - j->page_n) * sizeof *j->page);
	j->page_at = 0;
}

static const struct task_shape janitor_shape = SHAPE(
	struct janitor, janitor_forget, PART_WITH(INNER, struct janitor, stamp, &stamp_noted_shape),
	PART(IGNORED, struct janitor, stamp_text)); /* the time of the stamp */

TASK_KIND_STAMPED(janitor_kind, "janitor", struct janitor, janitor_states, .shape = &janitor_shape);

void janitor_init(struct janitor *j, const struct janitor_rules *rules, int64_t budget, struct mono_time start_at)
{
	ASSERT(budget > 0);
	*j = (struct janitor){.rules = rules, .budget = budget, .start_at = start_at};
	task_init(&j->task, &janitor_kind, /* topic= */ 0);
}
