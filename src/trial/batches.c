/*
 * Batches in a trial: two items that cost 1 each, an account with enough for both, or for one; and callers, each of whom cancels, accepts
 * an item that has succeeded, or pays in where the account has run dry.
 *
 * What a cancelled item has left outside is there until a cleanup comes after it; a key that was voided does nothing any more.
 */
#include <stdio.h>

#include "flow/batch_item.h"
#include "trial/parts.h"

#define ITEMS 2

/* clang-format off */

DB_STMT(setup_batch, "trial_setup_batch", "t", "",
	"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, total, due_at, created_at, loaded_at)"
	" VALUES (1, 'default', ?1, 1, 'caller', 2, 2, hx_now_ms(), hx_now_ms(), hx_now_ms())");
DB_STMT(setup_item, "trial_setup_item", "it", "", "INSERT INTO hx_batch_item (batch, n, input, cost) VALUES (1, ?1, ?2, 1)");

const struct db_stmt trial_batch = {.name = "trial_batch", .in = "", .out = "tiiii",
	.sql = "SELECT s.status, b.unknown, b.charged, b.refunded, coalesce(b.needs > a.balance, 0)"
	       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account"};
const struct db_stmt trial_items = {.name = "trial_items", .in = "", .out = "itti",
	.sql = "SELECT n, status, coalesce(decision, ''), charged FROM hx_batch_item ORDER BY n"};
const struct db_stmt trial_due_batches = {.name = "trial_due_batches", .in = "", .out = "i",
	.sql = "SELECT b.subject FROM hx_batch b JOIN hx_subject s ON s.id = b.subject"
	       " WHERE b.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())"};
DB_STMT(money, "trial_money", "", "ii",
	"SELECT a.balance <> (SELECT sum(amount) FROM hx_ledger) OR a.balance <> b.refunded - b.charged"
	" + (SELECT sum(amount) FROM hx_ledger WHERE reason IN ('opening', 'credit')),"
	" b.charged <> (SELECT sum(charged) FROM hx_batch_item)"
	" OR b.refunded <> (SELECT coalesce(sum(charged), 0) FROM hx_batch_item WHERE decision = 'cancelled')"
	" FROM hx_batch b JOIN hx_account a ON a.subject = b.account");

/* Rests are spread by ids, which are other numbers in every schedule: moments are looked at through a grid. */
#define IN_GRID(at) "(" at " - hx_now_ms() + 9999) / 10000"
const struct db_stmt trial_hash_batch = {.name = "trial_hash_batch", .in = "", .out = "tiiiiiiiiiiiiiiii",
	.sql = "SELECT s.status, s.version, s.fence, s.owner IS NULL, s.until - hx_now_ms(), b.cancel_requested, b.needs, b.next_n, b.succeeded,"
	       " b.failed, b.unknown, b.cancelled, b.refunded, b.late, b.flipped_to, b.cleanups, " IN_GRID("b.due_at")
	       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject"};
const struct db_stmt trial_hash_items = {.name = "trial_hash_items", .in = "", .out = "ttiiiiiiii",
	.sql = "SELECT status, decision, charged, attempt, failures, doubt, fence, " IN_GRID("due_at") ", output IS NULL, late IS NULL"
	       " FROM hx_batch_item ORDER BY n"};

/* clang-format on */

static const struct batch_machine *batch_machine_of(const void *context, struct slice workflow, int64_t version)
{
	const struct trial *t = context;

	(void)version;
	return slice_is(workflow, t->machine->of->name) ? t->machine->batch : NULL;
}

void trial_batch_setup(struct sim *sim)
{
	struct trial *t = trial_of(sim);
	struct stamp stamp = {++sim->state.next_id, sim->state.now, "setup"};
	struct unit unit;

	t->batch_policy = (struct batch_policy){.lease_ms = 60000, .machine_of = batch_machine_of, .context = t};
	unit_init(&unit, stamp.op);
	account_create(&unit, &stamp, slice_str("default"), slice_str("account"), /* subject= */ 2,
		       t->members[0].balance);
	(void)sim_run_unit(sim, &unit); /* what fails is a violation */
	unit_init(&unit, /* op= */ 0);
	UNIT_ADD(&unit, UNIT_ANY, &setup_batch, db_str(t->machine->of->name));
	for (int64_t n = 0; n < ITEMS; n++)
		UNIT_ADD(&unit, UNIT_ANY, &setup_item, db_int(n), db_text(t->members[0].input));
	(void)sim_run_unit(sim, &unit);
}

/* ---- callers ---- */

static bool offers(struct sim *sim, const struct db_rows *is, const struct db_rows *items, enum trial_batch_act act)
{
	const struct trial *t = trial_of(sim);
	const struct trial_ledger *ledger = trial_ledger(sim);
	struct slice status = db_cell(is, 0, 0)->s;
	bool dry = t->members[0].balance < TRIAL_BALANCE, waits = slice_is(status, BATCH_OUT_OF_CREDIT);
	size_t n = act - BATCH_ACCEPTS;

	/* Of an account that runs dry: what is done before that, or after it, is done where there is enough. */
	if (ways_is_terminal(&batch_ways, status) || (dry && !waits))
		return false;
	if (act == BATCH_CANCELS)
		return ledger->used[act] < (dry ? 1 : t->options->callers);
	if (act == BATCH_PAYS)
		return !ledger->used[act] && waits;
	/* Items are alike, after a cancel none is accepted any more, and while it waits for money it is as good as at any other moment. */
	return n == 0 && waits && !ledger->clicks && slice_is(db_cell(items, n, 1)->s, ITEM_SUCCEEDED);
}

unsigned trial_batch_offers(struct sim *sim, const unsigned *which, enum trial_batch_act *ret_act)
{
	struct unit_result is = trial_ask(sim, &trial_batch), items = trial_ask(sim, &trial_items);
	unsigned n = 0;

	for (unsigned act = 0; act < BATCH_ACTS; act++) {
		if (!offers(sim, &is.rows[0], &items.rows[0], act))
			continue;
		if (which && n == *which)
			*ret_act = act;
		n++;
	}
	return n;
}

void trial_batch_init(union sim_task *task, struct trial *t, enum trial_batch_act act, struct arena *texts)
{
	struct batch_verb_request *accept = &t->accepts[act == BATCH_ACCEPTS + 1];

	if (act == BATCH_CANCELS) {
		trial_tenure_init(task, t, /* cancels= */ true, texts);
	} else if (act == BATCH_PAYS) {
		snprintf(t->credit_key, sizeof t->credit_key, "paid-%u", trial_ledger(t->sim)->used[act]);
		t->credit = (struct account_credit_request){slice_str("default"), slice_str("account"),
							    slice_str(t->credit_key), t->pays};
		account_credit_init((struct account_credit *)task, &t->credit);
	} else {
		*accept = (struct batch_verb_request){.kind = BATCH_ACCEPT,
						      .workspace = slice_str("default"),
						      .subject = TRIAL_SUBJECT,
						      .n = act - BATCH_ACCEPTS,
						      .policy = &t->batch_policy};
		batch_verb_init((struct batch_verb *)task, accept, texts);
	}
}

/* ---- what must hold ---- */

/* The effect of an item, and whether a cleanup came after it. NULL: it has not happened. */
static const struct trial_caller *left_by(const struct sim *sim, int64_t n)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial_caller *left = NULL;

	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *c = &trial_of(sim)->callers[ledger->effects[i].caller];

		if (ledger->effects[i].subject == n + 1 && (c->role == ROLE_ACTION || c->role == ROLE_UNDO))
			left = c->role == ROLE_ACTION ? c : NULL;
	}
	return left;
}

void trial_batch_check(struct sim *sim)
{
	struct trial *t = trial_of(sim);
	struct unit_result books = trial_ask(sim, &money);

	if (db_cell(&books.rows[0], 0, 0)->i || db_cell(&books.rows[0], 0, 1)->i)
		trial_break(sim, RULE_MONEY, NULL,
			    "the balance is not what was there, less what was charged, and what was refunded");
	trial_reached(t, t->machine->of, TRIAL_ITEM);
}

/* Of what has happened: its item has its price, or was cleaned up. */
static void check_item(struct sim *sim, const struct db_rows *items, size_t i, const struct trial_caller *c)
{
	const char *name = c->service->action->name;

	if (slice_is(db_cell(items, i, 2)->s, "cancelled") && c->of->batch->cleanup_action)
		trial_break(sim, RULE_UNDONE, c, "item %zu was cancelled and its money given back, and %s is there", i,
			    name);
	if (!c->service->repeats && slice_is(db_cell(items, i, 1)->s, ITEM_FAILED))
		trial_break(sim, RULE_SILENCE, c,
			    "item %zu has failed and its money was given back, and %s has happened", i, name);
}

/* What is heard of too late is cleaned up after the end: so these are looked at where nothing goes on any more. */
void trial_batch_quiet(struct sim *sim)
{
	struct unit_result is = trial_ask(sim, &trial_batch), items = trial_ask(sim, &trial_items);
	struct slice status = db_cell(&is.rows[0], 0, 0)->s;

	if (!ways_is_terminal(&batch_ways, status) && !db_cell(&is.rows[0], 0, 4)->i) /* which waits for money */
		trial_break(sim, RULE_STUCK, NULL, "the batch stays %.*s for ever", SLICE_ARGS(status));
	for (size_t i = 0; i < items.rows[0].n; i++) {
		const struct trial_caller *c = left_by(sim, db_cell(&items.rows[0], i, 0)->i);

		if (c)
			check_item(sim, &items.rows[0], i, c);
	}
}
