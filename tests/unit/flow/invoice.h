/* An entity whose steps are driven by hand: "charge" is claimed and calls outside, "ping" calls unclaimed, and so does "knock", which from "done" calls nobody; "pay" is a plain transition. */
#ifndef HX_TESTS_UNIT_FLOW_INVOICE_H
#define HX_TESTS_UNIT_FLOW_INVOICE_H

#include "unit/flow/world.h"

#include "flow/entity_step.h"

static const char definition[] =
	"{\"workflow\":\"invoice\",\"kind\":\"entity\",\"status_types\":[\"open\",\"busy\",\"done\",\"paid\"],"
	"\"initial_status\":\"open\",\"actions\":{"
	"\"Charge\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/charge\",\"effect\":\"claimed\"},"
	"\"Ping\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ping\",\"effect\":\"keyed\"}},\"steps\":["
	"{\"step_id\":1,\"step_key\":\"charge\",\"status\":\"open\",\"successful_state\":\"done\",\"action\":\"Charge\","
	"\"claim_state\":[\"busy\",\"open\"],\"on_unknown\":\"revert\"},"
	"{\"step_id\":2,\"step_key\":\"pay\",\"status\":\"open\",\"successful_state\":\"paid\"},"
	"{\"step_id\":3,\"step_key\":\"ping\",\"status\":\"open\",\"successful_state\":\"paid\",\"action\":\"Ping\","
	"\"on_unknown\":\"hold\"},{\"step_id\":4,\"step_key\":\"knock\",\"status\":\"open\",\"successful_state\":\"paid\",\"action\":\"Ping\"},"
	"{\"step_id\":5,\"step_key\":\"knock\",\"status\":\"done\",\"successful_state\":\"paid\"}]}";

#define CHARGE_KEY "ent_0000000000007-6-charge"

static struct arena arena;
static struct step_request charge, pay;

static inline int make_workflow(void **state)
{
	const struct workflow *workflow;
	struct findings findings;

	(void)state;
	arena_init(&arena, 64u << 20);
	findings_init(&findings, &arena);
	workflow_parse("invoice.json", slice_str(definition), &arena, &findings, &workflow);
	if (!workflow)
		return -1;
	charge = (struct step_request){
		.ref = {slice_str("default"), entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, &arena),
			slice_str("e7")},
		.step_key = slice_str("charge"),
		.requester = slice_str("default"),
		.input = json_trust(slice_str("{}")),
		.lease_ms = LEASE_MS,
	};
	pay = charge;
	pay.step_key = slice_str("pay");
	return 0;
}

static inline int drop_workflow(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* What entity_read answers with; while a call of this step that had this input is kept. NULL: none is. */
static inline enum ask_kind hand_entity_called(struct hand *h, const char *status, int64_t version, int64_t fence,
					       const char *step, const char *input)
{
	struct db_value cells[ENTITY_COLUMNS] = {
		[ENTITY_SUBJECT] = db_int(7),       [ENTITY_STATUS] = db_str(status),
		[ENTITY_VERSION] = db_int(version), [ENTITY_FENCE] = db_int(fence),
		[ENTITY_EFFORT] = db_int(EFFORT),   [ENTITY_DATA] = db_str("{}"),
		[ENTITY_NAME] = db_str("e7"),       [ENTITY_WORKSPACE] = db_str("default"),
		[ENTITY_DOUBT] = db_int(0),
	};

	if (step) {
		cells[ENTITY_KEPT_STEP] = db_str(step);
		cells[ENTITY_KEPT_FROM] = db_str(status);
		cells[ENTITY_KEPT_REQUESTER] = db_str("cron");
		cells[ENTITY_KEPT_INPUT] = db_str(input);
		cells[ENTITY_KEPT_EFFORT] = db_int(EFFORT);
		cells[ENTITY_KEPT_ADDRESS] = db_str("http://127.0.0.1:1/charge");
		cells[ENTITY_KEPT_DATA] = db_str("{}");
	}
	return hand_rows(h, 1, ENTITY_COLUMNS, cells);
}

static inline enum ask_kind hand_entity(struct hand *h, const char *status, int64_t version, int64_t fence)
{
	return hand_entity_called(h, status, version, fence, /* step= */ NULL, /* input= */ NULL);
}

/* The same of a table of the user's, whose row has moved on from a status in which it was claimed. */
static inline enum ask_kind hand_entity_moved_on(struct hand *h, const char *status, int64_t version, int64_t fence)
{
	struct db_value cells[ENTITY_COLUMNS] = {
		[ENTITY_SUBJECT] = db_int(7),    [ENTITY_STATUS] = db_str(status), [ENTITY_VERSION] = db_int(version),
		[ENTITY_FENCE] = db_int(fence),  [ENTITY_EFFORT] = db_int(EFFORT), [ENTITY_DATA] = db_str("{}"),
		[ENTITY_NAME] = db_str("e7"),    [ENTITY_WORKSPACE] = db_str(""),  [ENTITY_DOUBT] = db_int(0),
		[ENTITY_OWNER] = db_str("gone"), [ENTITY_UNTIL] = db_int(1),
	};

	return hand_rows(h, 1, ENTITY_COLUMNS, cells);
}

static inline void begin_with(struct hand *h, struct entity_step *s, const struct step_request *rq)
{
	entity_step_init(s, rq, &arena);
	hand_init(h, &s->task);
	assert_string_equal(hand_where(h), "new");
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_string_equal(hand_where(h), "reading");
	assert_string_equal(hand_stmt(h),
			    rq->mode == STEP_FIRE && !rq->ref.machine->table ? "entity_read_bare" : "entity_read");
}

#endif
