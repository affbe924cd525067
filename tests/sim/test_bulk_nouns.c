/*
 * Bulks of jobs, batches and entities, explored: two hands, a person who does something else to what they are about, nodes that are lost,
 * commits whose answers are. Those of runs are test_bulk.c; what is checked of all of them is in bulks.h.
 *
 * On every edge: B1 to B4 of flow/bulk.h, and the verb was carried out, by the history, as often as an item was told to be done.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/account.h"
#include "flow/bulk_hand.h"
#include "flow/job.h"
#include "sim/explore.h"
#include "sim/invariant.h"

#define ACCOUNT 2
#define SETTLE_ROUNDS_MAX 60

static struct arena arena;
static struct batch_machine films;
static const struct entity_machine *bills;
static const char *done_from, *done_to; /* how the history has the verb */

static const struct batch_machine *film_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return &films;
}

static const struct entity_machine *bill_of(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return bills;
}

static const struct workflow *bill_version(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return bills->workflow;
}

static const struct batch_policy batches = {.lease_ms = 60000, .machine_of = film_of};
static const struct bulk_policy bulk_policy = {.batches = &batches, .entity_of = bill_of, .workflow_of = bill_version};

static void parse(void)
{
	static const char film[] =
		"{\"workflow\":\"film\",\"kind\":\"batch\",\"actions\":{\"render\":{\"kind\":\"noop\"}},"
		"\"item_action\":\"render\"}";
	static const char bill[] =
		"{\"workflow\":\"bill\",\"kind\":\"entity\",\"status_types\":[\"open\",\"closing\",\"closed\"],\"initial_status\":\"open\","
		"\"actions\":{\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\"}},\"steps\":[{\"step_id\":1,\"step_key\":\"close\","
		"\"status\":\"open\",\"claim_state\":[\"closing\",\"open\"],\"successful_state\":\"closed\",\"action\":\"Close\","
		"\"on_unknown\":\"hold\"}]}";
	const struct workflow *workflow;
	struct findings findings;

	arena_release(&arena);
	arena_init(&arena, 16u << 20);
	findings_init(&findings, &arena);
	batch_definition_parse("film.json", slice_str(film), &arena, &findings, &films.definition);
	workflow_parse("bill.json", slice_str(bill), &arena, &findings, &workflow);
	assert_null(findings.first);
	films.version = 1;
	bills = entity_machine_new(workflow, 1, /* table= */ NULL, &arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

#define A_JOB "INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, attempt, error, ended_at)" \
	" VALUES (1, 'default', 'stock', '', '', 'key', '{}', 8, '{}', hx_now_ms())"
#define A_BATCH "INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, total, created_at, loaded_at)" \
	" VALUES (1, 'default', 'film', 1, 'me', 2, 1, hx_now_ms(), hx_now_ms())"
#define AN_ITEM "INSERT INTO hx_batch_item (batch, n, input, cost) VALUES (1, 0, '{}', 64)"
#define AN_ENTITY "INSERT INTO hx_entity (subject, workspace, workflow, name, data, claim_step, claim_from, claim_requester, claim_input)" \
	" VALUES (1, 'default', 'bill', 'e1', '{}', 'close', 'open', 'ann', 'null')"
#define A_HELD_CLAIM "UPDATE hx_subject SET owner = 'held', until = 9223372036854775807, fence = 1 WHERE id = 1"

/* A claim that is held has no end of its own, and nothing else here is due some day. */
DB_STMT(stmt_moment, "sim_nouns_moment", "", "i", "SELECT NULL");

DB_STMT(stmt_hash_job, "sim_nouns_hash_job", "", "iiii", "SELECT attempt, due_at IS NULL, ended_at IS NULL, error IS NULL FROM hx_job");
DB_STMT(stmt_hash_batch, "sim_nouns_hash_batch", "", "iiiiiii",
	"SELECT due_at IS NULL, completed_at IS NULL, started_at IS NULL, cancel_requested, cancelled, flipped_to, next_n FROM hx_batch");
DB_STMT(stmt_hash_entity, "sim_nouns_hash_entity", "", "tii",
	"SELECT claim_step, claim_effort, (SELECT coalesce(sum(open), 0) FROM hx_kept_call) FROM hx_entity");

/* A bulk's own history rows: those that a person writes are to another status. */
DB_STMT(stmt_check, "sim_nouns_check", "tt", "i",
	"SELECT count(*) FROM hx_history WHERE subject = 1 AND from_status = ?1 AND to_status = ?2");

DB_STMT(stmt_tell, "sim_nouns_tell", "", "t",
	"SELECT s.status || ' v' || s.version || ', the bulk ' || b.state || coalesce(' ' || (SELECT group_concat(coalesce(result, 'open') ||"
	" coalesce(' ' || code, '')) FROM hx_bulk_item), '') FROM hx_bulk b, hx_subject s WHERE s.id = 1");

/* clang-format on */

static uint64_t hash_subject(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_job, hash);
	hash = sim_hash_answer(sim, &stmt_hash_batch, hash);
	return sim_hash_answer(sim, &stmt_hash_entity, hash);
}

#include "sim/bulks.h" /* of this */

/* ---- what must hold ---- */

static void check(struct sim *sim)
{
	struct db_value params[] = {db_str(done_from), db_str(done_to)};

	if (!rows_changed)
		return;
	rows_changed = false;
	check_bulk(sim, db_cell(&ask_store(sim, &stmt_check, 2, params).rows[0], 0, 0)->i);
}

static bool settle_one(struct sim *sim, int64_t *id)
{
	rows_changed = true;
	return settle_bulk(sim, id);
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, bulk_settled, SETTLE_ROUNDS_MAX,
					 "the bulk does not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup_job(struct sim *sim)
{
	sim_script(sim, A_JOB);
	make_bulk(sim);
}

static void setup_batch(struct sim *sim)
{
	struct stamp stamp = {++sim->state.next_id, sim->state.now, "setup"};
	struct unit unit;

	unit_init(&unit, stamp.op);
	account_create(&unit, &stamp, slice_str("default"), slice_str("alice"), ACCOUNT, 500);
	assert_int_equal(sim_run_unit(sim, &unit).verdict, UNIT_WON);
	sim_script(sim, A_BATCH);
	sim_script(sim, AN_ITEM);
	make_bulk(sim);
}

static void setup_entity(struct sim *sim)
{
	sim_script(sim, AN_ENTITY);
	sim_script(sim, A_HELD_CLAIM);
	make_bulk(sim);
}

/* ---- people ---- */

static void init_starter(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct batch_verb_request start = {
		.kind = BATCH_START, .workspace = {"default", 7}, .subject = 1, .policy = &batches};

	(void)plan;
	batch_verb_init((struct batch_verb *)task, &start, texts);
}

static void init_canceller(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	batch_cancel_init((struct batch_cancel *)task, slice_str("default"), 1, &batches, texts);
}

static void init_denier(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request denial;

	(void)plan;
	denial = (struct step_request){.mode = STEP_RESOLVE_NOT_DONE,
				       .ref = {slice_str("default"), bills, slice_str("e1")},
				       .step_key = slice_str("close"),
				       .requester = slice_str("ann"),
				       .input = json_trust(slice_str("null")),
				       .workflow_of = bill_version};
	entity_step_init((struct entity_step *)task, &denial, texts);
}

#define PERSON(name, init)                                                                                             \
	{                                                                                                              \
		name, 2, false, init, NULL, NULL                                                                       \
	}

static void explore(struct sim_scenario scenario)
{
	scenario.subjects_n = 1;
	scenario.nodes_n = 3;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	scenario.bounds = (struct sim_bounds){.crashes = 1, .lost_answers = 1};
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

static void exhaustive_jobs(void **state)
{
	(void)state;
	parse();
	bulk = (struct bulk_begun){"job", "redrive", "status == \"PARKED\"", "{}", BULK_RUNNING};
	done_from = JOB_PARKED, done_to = JOB_AVAILABLE;
	explore((struct sim_scenario){
		.name = "a parked job that two hands redrive, their bulk cancelled meanwhile",
		.initial = JOB_PARKED, /* no way leads there from the beginning, so it is of no kind */
		.driven = true,
		.setup = setup_job,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), BULK_CANCELLER(2), FINISHER(2)},
	});
}

static void exhaustive_batches_cancelled(void **state)
{
	(void)state;
	parse();
	bulk = (struct bulk_begun){"batch", "cancel", "status == \"PENDING\"", "{}", BULK_RUNNING};
	done_from = BATCH_PENDING, done_to = BATCH_CANCELLING;
	explore((struct sim_scenario){
		.name = "a pending batch that two hands cancel, and a person starts",
		.kind = batch_kind(),
		.initial = BATCH_PENDING,
		.driven = true,
		.setup = setup_batch,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), PERSON("starter", init_starter), FINISHER(2)},
	});
}

static void exhaustive_batches_started(void **state)
{
	(void)state;
	parse();
	bulk = (struct bulk_begun){"batch", "start", "status == \"PENDING\"", "{}", BULK_RUNNING};
	done_from = BATCH_PENDING, done_to = BATCH_QUEUED;
	explore((struct sim_scenario){
		.name = "a pending batch that two hands start, and a person cancels",
		.kind = batch_kind(),
		.initial = BATCH_PENDING,
		.driven = true,
		.setup = setup_batch,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), PERSON("canceller", init_canceller), FINISHER(2)},
	});
}

static void exhaustive_entities(void **state)
{
	(void)state;
	parse();
	bulk = (struct bulk_begun){"entity", "resolve", "status == \"closing\"",
				   "{\"step\":\"close\",\"outcome\":\"done\"}", BULK_RUNNING};
	done_from = "closing", done_to = "closed";
	explore((struct sim_scenario){
		.name = "a claim that two hands resolve as done, and a person as not done",
		.kind = bills->kind,
		.initial = "closing",
		.claim_status = "closing",
		.revert_status = "open",
		.setup = setup_entity,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), PERSON("denier", init_denier), FINISHER(2)},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_jobs),
		cmocka_unit_test(exhaustive_batches_cancelled),
		cmocka_unit_test(exhaustive_batches_started),
		cmocka_unit_test(exhaustive_entities),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
