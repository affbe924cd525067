/* See bulks.h. */
#include "engine/bulks.h"

#include <stdatomic.h>

#include "base/id.h"
#include "base/log.h"
#include "engine/batches.h"
#include "engine/definitions.h"
#include "engine/runs.h"
#include "flow/bulk_hand.h"
#include "flow/bulk_select.h"
#include "flow/single.h"

#define SLICE 16
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define LEAD_BYTES_MAX (256u << 20)
#define HAND_BYTES_MAX (512u << 20)

_Static_assert(BULK_TOPIC != FUNCTION_TOPIC, "a turn of a function is no reason to look for bulks");

struct bulks {
	struct feeder feeder;
	struct bulk_policy policy;
};

struct bulk_work;

struct hand_seat {
	struct seat seat;
	struct bulk_hand hand;
	struct arena arena;
	struct bulk_work *work;
	int64_t number;
};

/* One bulk under way here. */
struct bulk_work {
	struct fed fed;
	struct bulk_select lead;
	struct single finish;
	_Atomic int hands;    /* that are not done; the one who begins them counts as one */
	_Atomic bool trouble; /* something has to be tried again */
	struct hand_seat seats[BULK_HANDS];
};

static struct lane *lane_of(const struct bulk_work *work, int64_t hand)
{
	return lanes_of(work->fed.feeder->parts->lanes, work->fed.subject + hand);
}

/* ---- the end ---- */

static void bulks_finished(struct seat *seat, enum hx_code code)
{
	struct bulk_work *work = (struct bulk_work *)seat;

	fed_end(&work->fed, code || atomic_load(&work->trouble) ? FEEDER_REST_MS : 0);
}

static void build_finish(const struct single *single, struct unit *unit)
{
	const struct bulk_work *work = single->context;

	bulk_finish(unit, &single->stamp, work->fed.subject);
}

static enum hx_code took_finish(struct single *single UNUSED, const struct unit_result *result UNUSED)
{
	return HX_OK;
}

static void begin_finish(struct bulk_work *work)
{
	single_init(&work->finish, work, build_finish, took_finish);
	work->fed.seat = (struct seat){.task = &work->finish.task, .done = bulks_finished};
	if (lane_submit_own(lane_of(work, 0), &work->fed.seat))
		fed_end(&work->fed, FEEDER_REST_MS);
}

/* ---- hands ---- */

static void hand_left(struct bulk_work *work)
{
	if (atomic_fetch_sub(&work->hands, 1) == 1)
		begin_finish(work);
}

static void bulks_hand_done(struct seat *seat, enum hx_code code);

static void begin_hand(struct hand_seat *hand, int64_t after)
{
	struct bulk_work *work = hand->work;

	arena_init(&hand->arena, HAND_BYTES_MAX);
	bulk_hand_init(&hand->hand, work->fed.subject, hand->number, BULK_HANDS, after,
		       &((const struct bulks *)work->fed.feeder)->policy, &hand->arena);
	hand->seat = (struct seat){.task = &hand->hand.task, .done = bulks_hand_done};
	if (feeder_is_closed(work->fed.feeder) || lane_submit_own(lane_of(work, hand->number), &hand->seat)) {
		atomic_store(&work->trouble, true);
		arena_release(&hand->arena);
		hand_left(work);
	}
}

static void bulks_hand_done(struct seat *seat, enum hx_code code)
{
	struct hand_seat *hand = (struct hand_seat *)seat;
	bool more = hand->hand.more && !code;
	int64_t after = hand->hand.after;

	if (code)
		atomic_store(&hand->work->trouble, true);
	arena_release(&hand->arena);
	if (more)
		begin_hand(hand, after);
	else
		hand_left(hand->work);
}

static void begin_hands(struct bulk_work *work)
{
	atomic_store(&work->hands, BULK_HANDS + 1);
	for (int64_t i = 0; i < BULK_HANDS; i++) {
		work->seats[i].work = work;
		work->seats[i].number = i;
		begin_hand(&work->seats[i], /* after= */ -1);
	}
	hand_left(work);
}

/* ---- the lead ---- */

static void bulks_led(struct seat *seat, enum hx_code code)
{
	struct bulk_work *work = (struct bulk_work *)seat;
	char id[ID_TEXT_BYTES];

	if (code && code != HX_CLAIM_FAILED && code != HX_STOPPING) {
		id_format("bulk", work->fed.subject, id);
		log_warn(work->fed.feeder->parts->log, "a bulk was not looked at", log_text("id", id),
			 log_text("code", hx_code_name(code)));
	}
	if (code)
		fed_end(&work->fed, FEEDER_REST_MS);
	else if (slice_is(work->lead.row.state, BULK_RUNNING))
		begin_hands(work);
	else
		begin_finish(work);
}

static bool bulks_begin(void *context, struct due due)
{
	struct bulk_work *work = fed_new(context, due.subject, sizeof *work, LEAD_BYTES_MAX);

	if (!work)
		return false;
	work->lead.spec.subject = due.subject;
	work->lead.arena = &work->fed.arena;
	bulk_select_init(&work->lead);
	return fed_begin(&work->fed, &work->lead.task, bulks_led);
}

static const struct entity_machine *entity_of(const void *context, struct slice workflow)
{
	/* They are known by a pointer that is not written through, as with definitions_entity_version(). */
	return definitions_find((struct definitions *)context, workflow);
}

static void bulks_prepare(void *part, struct engine_parts *parts)
{
	struct bulks *bulks = part;

	bulks->policy = (struct bulk_policy){parts->run_policy, parts->batch_policy, entity_of,
					     definitions_entity_version, parts->definitions};
}

const struct feed bulks_feed = {
	&bulk_due_source, UNDER_WAY_MAX, SLICE, bulks_begin, .size = sizeof(struct bulks), .prepare = bulks_prepare};
