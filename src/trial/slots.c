/*
 * A schedule in a trial: the run that is explored is what one of its slots has started, and the next slot comes while that is at work, or
 * after it. The nodes that drive runs look at it. Its times are taken as UTC: what a slot meets matters here, and not when it comes.
 */
#include "flow/schedule_look.h"
#include "trial/parts.h"

/* clang-format off */

#define OPEN "EXISTS (SELECT 1 " SCHEDULE_OPENED "c.subject)"
#define WAITS "EXISTS (SELECT 1 FROM hx_schedule_slot w WHERE w.schedule = c.subject)"

DB_STMT(setup_open, "trial_setup_open", "i", "", "INSERT INTO hx_schedule_open (schedule, subject) VALUES (?1, 1)");
const struct db_stmt trial_slot_due = {.name = "trial_slot_due", .in = "", .out = "i",
	.sql = "SELECT c.subject FROM hx_schedule c WHERE c.due_at <= hx_now_ms() AND NOT (" WAITS " AND " OPEN ")"};
/* While a slot waits it would be looked at again and again: here that is when it need wait no longer. */
const struct db_stmt trial_slot_next = {.name = "trial_slot_next", .in = "", .out = "i",
	.sql = "SELECT c.due_at FROM hx_schedule c WHERE c.due_at > hx_now_ms() AND NOT (" WAITS " AND " OPEN ")"};
DB_STMT(to_cancel, "trial_slot_cancels", "", "i",
	"SELECT r.subject FROM hx_schedule c JOIN hx_schedule_open o ON o.schedule = c.subject JOIN hx_subject t ON t.id = o.subject"
	" JOIN hx_run r ON r.subject = t.id WHERE " SCHEDULE_IS_OPEN " AND t.status <> 'CANCELLING' AND r.asked IS NULL AND " WAITS " LIMIT 1");
DB_STMT(open_n, "trial_slot_open", "", "ii", "SELECT count(*), (SELECT count(last_slot) FROM hx_schedule)"
	" - (SELECT count(*) FROM hx_run WHERE run_key LIKE 'schedule:%') FROM hx_schedule c JOIN hx_schedule_open o ON o.schedule = c.subject"
	" JOIN hx_subject t ON t.id = o.subject WHERE " SCHEDULE_IS_OPEN);
const struct db_stmt trial_hash_slots = {.name = "trial_hash_slots", .in = "", .out = "iiii",
	.sql = "SELECT c.slot_at - hx_now_ms(), c.due_at - hx_now_ms(), c.revision, " WAITS " FROM hx_schedule c"};

/* clang-format on */

static const struct zone *zone_of(const void *context, struct slice name)
{
	(void)context, (void)name;
	return &zone_utc;
}

static const struct run_machine *run_of(const void *context, struct slice workflow)
{
	return trial_machine_of(context, workflow, RUN_NEWEST);
}

static bool cancels(const struct trial *t)
{
	return t->machine->schedule->spec.overlap == OVERLAP_CANCEL;
}

void trial_slots_setup(struct sim *sim)
{
	struct trial *t = trial_of(sim);
	struct schedule_row row = {.workspace = slice_str("default"),
				   .name = t->machine->schedule->name,
				   .requester = slice_str("schedule"),
				   .spec = t->machine->schedule->spec};
	struct stamp stamp = {.at = sim->state.now, .node = "setup"};
	LOCAL_STRBUF(text, SCHEDULE_INPUT_BYTES_MAX + 4096);
	LOCAL_UNIT(unit);

	row.spec.timing.zone = &zone_utc;
	row.slot_at = schedule_slot_after(&row, sim->state.now.ms);
	if (!row.slot_at || row.spec.paused)
		return;
	row.subject = ++sim->state.next_id;
	row.due_at = schedule_due(&row, row.slot_at);
	row.spec.timing.to_s = row.slot_at / 1000; /* one is enough to meet the run */
	schedule_spec_write(&row.spec, &text);
	row.text = strbuf_slice(&text);
	stamp.op = ++sim->state.next_id;
	schedule_create(&unit, &stamp, &row);
	UNIT_ADD(&unit, UNIT_ANY, &setup_open, db_int(row.subject));
	(void)sim_run_unit(sim, &unit); /* what fails is a violation */
	t->slots = (struct schedule_policy){.zone_of = zone_of, .run_of = run_of, .context = t};
}

unsigned trial_slots_due(struct sim *sim)
{
	size_t n = trial_ask(sim, &trial_slot_due).rows[0].n;

	return (unsigned)(n ? n : cancels(trial_of(sim)) ? trial_ask(sim, &to_cancel).rows[0].n : 0);
}

/* A look; or, as a node does it when one has said so, the cancel of what a slot is not to meet. */
void trial_slots_init(union sim_task *task, struct trial *t, struct arena *texts)
{
	struct unit_result due = trial_ask(t->sim, &trial_slot_due);

	if (due.rows[0].n) {
		schedule_look_init((struct schedule_look *)task, db_cell(&due.rows[0], 0, 0)->i, &t->slots, texts);
		return;
	}
	due = trial_ask(t->sim, &to_cancel);
	t->slot_cancel = (struct run_verb_request){.kind = RUN_CANCEL,
						   .workspace = slice_str("default"),
						   .subject = db_cell(&due.rows[0], 0, 0)->i,
						   .policy = &t->policy};
	run_verb_init((struct run_verb *)task, &t->slot_cancel, texts);
}

void trial_slots_check(struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &open_n);

	if (db_cell(&result.rows[0], 0, 0)->i > 1 && trial_of(sim)->machine->schedule->spec.overlap != OVERLAP_ALLOW)
		trial_break(sim, RULE_ENGINE, NULL,
			    "H3: a slot was started while what the one before it started is open");
	if (db_cell(&result.rows[0], 0, 1)->i) /* there is one slot here */
		trial_break(sim, RULE_ENGINE, NULL, "H1, H2: a slot that was started has no run of its own");
}
