/* See janitor.h. */
#include "flow/janitor.h"

#include "base/hash.h"
#include "flow/transition.h"

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
		j->at = JANITOR_REVERTING;
	} else if (!j->more || j->budget == 0) {
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

		j->cursor = db_cell(rows, i, 0)->i;
		j->budget--;
		if (!rule) {
			j->unruled++;
			continue;
		}
		j->page[j->page_n].subject = j->cursor;
		j->page[j->page_n].fence = db_cell(rows, i, 3)->i;
		j->page[j->page_n++].rule = rule;
	}
	go_on(j, answer);
}

static void take(struct task *task, const struct answer *answer)
{
	struct janitor *j = (struct janitor *)task;

	switch (j->at) {
	case JANITOR_NEW:
		j->at = JANITOR_SCANNING;
		break;
	case JANITOR_SCANNING:
		take_page(j, answer);
		break;
	case JANITOR_REVERTING: /* lost: somebody was first. Failed or unknown: the next sweep sees what is left */
		j->reverted += answer->result->verdict == UNIT_WON;
		j->page_at++;
		go_on(j, answer);
		break;
	case JANITOR_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct janitor *j = (const struct janitor *)task;

	if (j->at == JANITOR_DONE) {
		ask->kind = ASK_DONE;
		ask->code = j->code;
		return;
	}
	ask->kind = ASK_COMMIT;
	if (j->at == JANITOR_SCANNING) {
		unit_init(ask->unit, /* op= */ 0);
		subject_scan_stuck(ask->unit, j->cursor, page_size(j));
	} else {
		const struct janitor_rule *rule = j->page[j->page_at].rule;
		struct move move = {j->page[j->page_at].subject, rule->claim_into, rule->revert_to};

		unit_init(ask->unit, j->stamp.op);
		subject_revert(ask->unit, &j->stamp, &move, j->page[j->page_at].fence);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "scanning", "reverting", "done"};

	return names[((const struct janitor *)task)->at];
}

static uint64_t fingerprint(const struct task *task, uint64_t hash)
{
	const struct janitor *j = (const struct janitor *)task;

	hash = hash_mix(hash, j->at);
	hash = hash_mix(hash, (uint64_t)j->budget);
	hash = hash_mix(hash, (uint64_t)j->cursor);
	hash = hash_mix(hash, j->more);
	hash = hash_mix(hash, j->code);
	for (size_t i = j->page_at; i < j->page_n; i++) {
		hash = hash_mix(hash, (uint64_t)j->page[i].subject);
		hash = hash_mix(hash, (uint64_t)j->page[i].fence);
	}
	return hash;
}

static const struct task_kind kind = {
	.name = "janitor",
	.size = sizeof(struct janitor),
	.take = take,
	.ask = ask,
	.where = where,
	.fingerprint = fingerprint,
};

void janitor_init(struct janitor *j, const struct janitor_rules *rules, int64_t budget)
{
	ASSERT(budget > 0);
	*j = (struct janitor){.rules = rules, .budget = budget};
	task_init(&j->task, &kind, /* topic= */ 0);
}
