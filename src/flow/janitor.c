/* See janitor.h. */
#include "flow/janitor.h"

#include <stdio.h>

#include "flow/answer.h"
#include "flow/entity.h"
#include "flow/shapes.h"

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

static void end(struct janitor *j, enum hx_code code)
{
	j->code = code;
	j->at = JANITOR_DONE;
}

/* The next claim of the page, or the next page, or the end. */
static void go_on(struct janitor *j, const struct answer *answer)
{
	if (j->page_at < j->page_n) {
		j->stamp = flow_stamp(answer);
		j->at = j->page[j->page_at].rule->machine ? JANITOR_LOOKING : JANITOR_REVERTING;
	} else if (!j->more || j->budget == 0 || j->handed_n) {
		end(j, HX_OK);
	} else {
		j->at = JANITOR_SCANNING;
	}
}

static void take_page(struct janitor *j, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(j, HX_STORE_UNAVAILABLE);
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
	go_on(j, answer);
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

static void take_looked(struct janitor *j, const struct answer *answer)
{
	const struct janitor_rule *rule = j->page[j->page_at].rule;
	const struct db_rows *rows = &answer->result->rows[0];
	enum on_unknown wish;

	if (answer->result->verdict != UNIT_WON) {
		end(j, HX_STORE_UNAVAILABLE);
		return;
	}
	wish = rows->n ? wish_of(rule, rows) : UNKNOWN_REVERT;
	j->name[0] = '\0';
	if (rows->n) {
		snprintf(j->name, sizeof j->name, "%.*s", SLICE_ARGS(db_cell(rows, 0, ENTITY_NAME)->s));
		j->version = db_cell(rows, 0, ENTITY_VERSION)->i;
	}
	j->stamp = flow_stamp(answer);
	wall_time_format(j->stamp.at, j->stamp_text);
	if (wish == UNKNOWN_PROBE) {
		j->handed[j->handed_n++] = j->page[j->page_at++];
		go_on(j, answer);
	} else {
		j->at = wish == UNKNOWN_HOLD ? JANITOR_HOLDING : JANITOR_REVERTING;
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

static void take(struct task *task, const struct answer *answer)
{
	struct janitor *j = (struct janitor *)task;

	switch (j->at) {
	case JANITOR_NEW:
	case JANITOR_SLEEPING:
		j->at = answer->mono.ns < j->start_at.ns ? JANITOR_SLEEPING : JANITOR_SCANNING;
		break;
	case JANITOR_SCANNING:
		take_page(j, answer);
		break;
	case JANITOR_LOOKING:
		take_looked(j, answer);
		break;
	case JANITOR_REVERTING: /* lost: somebody was first. Failed or unknown: the next sweep sees what is left */
	case JANITOR_HOLDING:
		j->reverted += j->at == JANITOR_REVERTING && answer->result->verdict == UNIT_WON;
		j->held += j->at == JANITOR_HOLDING && answer->result->verdict == UNIT_WON;
		if (answer->result->verdict == UNIT_WON)
			note_ended(j);
		j->page_at++;
		go_on(j, answer);
		break;
	case JANITOR_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask_unit(const struct janitor *j, struct unit *unit)
{
	unit_init(unit, j->stamp.op);
	if (j->at == JANITOR_SCANNING) { /* page_at stands after the page */
		subject_scan_stuck(unit, j->cursor, page_size(j));
		return;
	}

	const struct janitor_rule *rule = j->page[j->page_at].rule;
	int64_t subject = j->page[j->page_at].subject, fence = j->page[j->page_at].fence;

	if (j->at == JANITOR_LOOKING) {
		entity_read_subject(unit, subject);
	} else if (j->at == JANITOR_HOLDING) {
		subject_hold(unit, subject, fence, /* if_past= */ true);
	} else {
		struct move move = {subject, rule->claim_into, rule->revert_to};
		struct table_row row = {rule->machine ? rule->machine->table : NULL, slice_str(j->name), j->version,
					slice_str(j->stamp_text)};

		if (row.table)
			entity_table_revert(unit, &j->stamp, &row, &move, fence);
		else
			subject_revert(unit, &j->stamp, &move, fence);
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct janitor *j = (const struct janitor *)task;

	switch (j->at) {
	case JANITOR_DONE:
		ask->kind = ASK_DONE;
		ask->code = j->code;
		break;
	case JANITOR_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = j->start_at;
		break;
	default:
		ask->kind = ASK_COMMIT;
		ask_unit(j, ask->unit);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new",       "sleeping", "scanning", "looking who claimed",
					    "reverting", "holding",  "done"};

	return names[((const struct janitor *)task)->at];
}

/* What it has looked up is of the claim that it ends, and what it has dealt with is gone from the page. */
static void forget(void *copy)
{
	struct janitor *j = copy;

	if (j->at != JANITOR_REVERTING && j->at != JANITOR_HOLDING) {
		j->stamp = (struct stamp){0};
		memset(j->name, 0, sizeof j->name);
		j->version = 0;
	}
	j->page_n -= j->page_at;
	memmove(j->page, j->page + j->page_at, j->page_n * sizeof *j->page);
	memset(j->page + j->page_n, 0, (JANITOR_PAGE - j->page_n) * sizeof *j->page);
	j->page_at = 0;
}

static const struct task_shape shape = SHAPE(struct janitor, forget,
					     PART_WITH(INNER, struct janitor, stamp, &stamp_noted_shape),
					     PART(IGNORED, struct janitor, stamp_text)); /* the time of the stamp */

static const struct task_kind kind = {
	.name = "janitor",
	.size = sizeof(struct janitor),
	.take = take,
	.ask = ask,
	.where = where,
	.shape = &shape,
};

void janitor_init(struct janitor *j, const struct janitor_rules *rules, int64_t budget, struct mono_time start_at)
{
	ASSERT(budget > 0);
	*j = (struct janitor){.rules = rules, .budget = budget, .start_at = start_at};
	task_init(&j->task, &kind, /* topic= */ 0);
}
