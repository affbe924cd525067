/* See batches.h. */
#include "engine/batches.h"

#include <stdlib.h>
#include <time.h>

#include "base/id.h"
#include "base/utf8.h"
#include "engine/batch_keeper.h"
#include "engine/engine.h"

#define TURN_BYTES_MAX (96u << 20)
#define TEXT_BYTES_MAX (64u << 10) /* what a tenure keeps beside its turns */
#define WHY_BYTES_MAX 500          /* of the reason why a cleanup has failed */
#define BATCHES_SLICE 8
#define DRAIN_LOOK_MS 5

struct batches {
	struct feeder feeder;
	struct batch_policy policy;
	_Atomic size_t tenures_n;
};

struct tenure {
	struct batches *batches;
	int64_t subject;
	bool fed; /* under way for the feeder */
	void (*done)(void *context);
	void *context;
	/* Over what follows: turns that are begun in one lane may end in another one before the last of them is begun. */
	pthread_mutex_t mutex;
	struct batch_tenure turns;
	enum hx_code code;      /* of the last lead */
	struct batch_hold hold; /* as it was first, with texts that are ours; fence 0: there is none yet */
	struct batch_keeper *keeper;
	struct arena arena;
	char why[WHY_BYTES_MAX]; /* turns.seen.why, which outlives the turn that has found it */
};

struct turn {
	struct seat seat;
	struct tenure *tenure;
	struct arena arena;
	enum batch_turn kind;
	union {
		struct task task;
		struct batch_lead lead;
		struct batch_hand hand;
		struct batch_clean clean;
	};
};

static const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	const struct batches *batches = context;

	return definitions_batch_version(batches->feeder.parts->definitions, workflow, version);
}

static int64_t fence_floor(const void *context)
{
	const struct batches *batches = context;

	return atomic_load(batches->feeder.parts->fence_floor);
}

/* ---- what came of a turn ---- */

static void tell_unknown(struct batches *batches, const struct batch_lead *lead, const char *id)
{
	if (feeder_may_tell(&batches->feeder))
		log_warn(batches->feeder.parts->log,
			 lead->row.machine ? "a batch is left to a program that has its functions"
					   : "a batch's definition is not known here: it is looked for",
			 log_text("id", id), log_slice("workflow", lead->missing_workflow),
			 log_int("version", lead->row.definition_version));
}

/* Losing a race for a batch, and being stopped, is not worth a line. */
static void tell_led(struct batches *batches, const struct batch_lead *lead, const char *id, enum hx_code code)
{
	struct engine_metrics *metrics = batches->feeder.parts->metrics;
	struct log *log = batches->feeder.parts->log;
	bool fenced = lead->fenced || code == HX_STALE_FENCE;

	atomic_fetch_add(&metrics->batches_driven, code == HX_OK && lead->holding && lead->next == LEAD_OVER);
	atomic_fetch_add(&metrics->batches_taken_over, lead->took_over);
	atomic_fetch_add(&metrics->batches_fenced, fenced);
	if (lead->took_over)
		log_warn(log, "a batch was taken over: its holder's time was over", log_text("id", id),
			 log_text("code", hx_code_name(code)));
	if (fenced)
		log_warn(log, "a batch's claim was overrun: what this node still had in mind was not written",
			 log_text("id", id));
	else if (code == HX_CONFIG_ERROR)
		tell_unknown(batches, lead, id);
	else if (code != HX_OK && code != HX_CLAIM_FAILED && code != HX_STOPPING)
		log_warn(log, "a batch was not worked on", log_text("id", id), log_text("code", hx_code_name(code)));
}

/* What has become of the item, as far as this node knows: of an end that was lost, another one has the truth. */
static void count_item(struct engine_metrics *metrics, const struct batch_hand *hand)
{
	const char *status = task_is_done(&hand->task) && hand->end.status ? hand->end.status : "";

	atomic_fetch_add(&metrics->batch_items_succeeded, !hand->late && strcmp(status, ITEM_SUCCEEDED) == 0);
	atomic_fetch_add(&metrics->batch_items_failed, strcmp(status, ITEM_FAILED) == 0);
	atomic_fetch_add(&metrics->batch_items_unknown, hand->unknown);
	atomic_fetch_add(&metrics->batch_items_late, hand->late);
}

/* That the batch is another's by now is for the lead to tell. */
static void tell_worked(struct batches *batches, const struct batch_hand *hand, const char *id, enum hx_code code)
{
	struct log *log = batches->feeder.parts->log;

	count_item(batches->feeder.parts->metrics, hand);
	if (hand->late)
		log_warn(log, "an item was done after it had been cancelled or given up: it is not charged",
			 log_text("id", id), log_int("item", hand->n));
	if (hand->unknown)
		log_warn(log, "an item's outcome is unknown: it is left for a person", log_text("id", id),
			 log_int("item", hand->n));
	if (hand->came_to == HAND_FAILED && code != HX_STALE_FENCE)
		log_warn(log, "an item could not be worked on: its batch is let go", log_text("id", id),
			 log_int("item", hand->n), log_text("code", hx_code_name(code)));
}

static void tell_cleaned(struct batches *batches, const struct batch_clean *clean, const char *id, enum hx_code code)
{
	if (clean->failed && code != HX_STOPPING)
		log_warn(batches->feeder.parts->log,
			 "what cancelled items have left behind was not deleted: it is tried again", log_text("id", id),
			 log_int("from", clean->from), log_slice("why", clean->why),
			 log_text("code", hx_code_name(code ? code : HX_ACTION_FAILED)));
}

/* At the edge, once. */
static void batches_tell(const struct turn *turn, enum hx_code code)
{
	struct batches *batches = turn->tenure->batches;
	char id[ID_TEXT_BYTES];

	id_format("batch", turn->tenure->subject, id);
	if (turn->kind == TURN_LEAD)
		tell_led(batches, &turn->lead, id, code);
	else if (turn->kind == TURN_HAND)
		tell_worked(batches, &turn->hand, id, code);
	else
		tell_cleaned(batches, &turn->clean, id, code);
}

/* ---- a tenure ---- */

static bool batches_admit(struct batches *batches, size_t tenures_max)
{
	if (atomic_fetch_add(&batches->tenures_n, 1) < tenures_max)
		return true;
	atomic_fetch_sub(&batches->tenures_n, 1);
	return false;
}

/* NULL: there is no room, or no memory. */
static struct tenure *tenure_new(struct batches *batches, int64_t subject, size_t tenures_max)
{
	struct tenure *t;

	if (!batches_admit(batches, tenures_max))
		return NULL;
	t = calloc(1, sizeof *t);
	if (!t) {
		atomic_fetch_sub(&batches->tenures_n, 1);
		return NULL;
	}
	t->batches = batches;
	t->subject = subject;
	pthread_mutex_init(&t->mutex, NULL);
	arena_init(&t->arena, TEXT_BYTES_MAX);
	return t;
}

static void tenure_free(struct tenure *t)
{
	struct batches *batches = t->batches;

	batch_keeper_stop(t->keeper);
	pthread_mutex_destroy(&t->mutex);
	arena_release(&t->arena);
	free(t);
	atomic_fetch_sub(&batches->tenures_n, 1);
}

/* The last turn has ended: nobody else knows of it any more. */
static void tenure_over(struct tenure *t)
{
	struct batches *batches = t->batches;
	int64_t subject = t->subject, rest = feeder_rest_ms(t->code);
	bool fed = t->fed;

	if (t->done)
		t->done(t->context);
	tenure_free(t);
	if (fed)
		feeder_ended(&batches->feeder, subject, rest);
}

/*
 * Texts of a hold are those of a turn, or of a caller, and never change: the first copy is good for the whole tenure. From
 * then on the batch is ours, and kept.
 */
static void keep_texts(struct tenure *t)
{
	struct batch_hold *hold = &t->turns.hold;

	if (!t->turns.holding)
		return;
	if (t->hold.subject == 0) { /* the fence would not do: with one of 0 every turn would start a keeper */
		t->hold = *hold;
		batch_hold_keep(&t->hold, &t->arena);
		t->keeper = batch_keeper_start(t->batches->feeder.parts->lanes, hold);
	}
	t->hold.since = hold->since;
	*hold = t->hold;
}

static void keep_why(struct tenure *t)
{
	struct slice *why = &t->turns.seen.why;
	size_t n = why->n < sizeof t->why ? why->n : sizeof t->why;

	if (!why->p || why->p == t->why)
		return;
	memcpy(t->why, why->p, n);
	*why = slice_of(t->why, n < why->n ? utf8_cut(slice_of(t->why, n)) : n);
}

/* ---- turns ---- */

static void turn_ended(struct seat *seat, enum hx_code code);

static struct turn *turn_new(struct tenure *t, enum batch_turn kind)
{
	struct turn *turn = calloc(1, sizeof *turn);
	const struct batch_hold *hold = &t->turns.hold;

	if (!turn)
		return NULL;
	turn->tenure = t;
	turn->kind = kind;
	turn->seat = (struct seat){.task = &turn->task, .done = turn_ended};
	arena_init(&turn->arena, TURN_BYTES_MAX);
	if (kind == TURN_LEAD)
		batch_lead_init(&turn->lead, t->subject, &t->batches->policy, t->turns.holding ? hold : NULL,
				&t->turns.seen, &turn->arena);
	else if (kind == TURN_HAND)
		batch_hand_init(&turn->hand, hold, &turn->arena);
	else
		batch_clean_init(&turn->clean, hold, batch_tenure_slice(&t->turns), &turn->arena);
	atomic_fetch_add(&t->batches->feeder.parts->metrics->batch_turns, 1);
	return turn;
}

static void turn_free(struct turn *turn)
{
	atomic_fetch_sub(&turn->tenure->batches->feeder.parts->metrics->batch_turns, 1);
	arena_release(&turn->arena);
	free(turn);
}

/* True: it is the lane's, and may have ended already. A tenure whose texts could not be kept begins nothing more. */
static bool begin_turn(struct tenure *t, enum batch_turn kind)
{
	int64_t home = t->turns.holding ? t->turns.hold.account : t->subject;
	bool may = !t->arena.failed && (kind == TURN_LEAD || !feeder_is_closed(&t->batches->feeder));
	struct turn *turn = may ? turn_new(t, kind) : NULL;

	if (!turn)
		return false;
	if (lane_submit_own(lanes_of(t->batches->feeder.parts->lanes, home), &turn->seat) == HX_OK)
		return true;
	turn_free(turn);
	return false;
}

/* Under the mutex. */
static void take_in(struct tenure *t, const struct turn *turn, enum hx_code code)
{
	if (turn->kind == TURN_LEAD)
		t->code = code;
	/* One that the lane has dropped knows nothing: what it was at is as good as refused. */
	if (!task_is_done(&turn->task))
		batch_tenure_refused(&t->turns, turn->kind);
	else if (turn->kind == TURN_LEAD)
		batch_tenure_led(&t->turns, &turn->lead);
	else if (turn->kind == TURN_HAND)
		batch_tenure_worked(&t->turns, &turn->hand);
	else
		batch_tenure_cleaned(&t->turns, &turn->clean);
	keep_texts(t);
	keep_why(t);
}

/* Under the mutex. */
static void begin_turns(struct tenure *t)
{
	enum batch_turn kind;

	while ((kind = batch_tenure_next(&t->turns)) != TURN_NONE)
		if (!begin_turn(t, kind))
			batch_tenure_refused(&t->turns, kind);
}

static void turn_ended(struct seat *seat, enum hx_code code)
{
	struct turn *turn = (struct turn *)seat;
	struct tenure *t = turn->tenure;
	bool over;

	batches_tell(turn, code);
	pthread_mutex_lock(&t->mutex);
	take_in(t, turn, code);
	turn_free(turn);
	begin_turns(t);
	over = batch_tenure_is_over(&t->turns);
	ASSERT(over == (t->turns.under_way == 0));
	pthread_mutex_unlock(&t->mutex);
	if (over)
		tenure_over(t);
}

/* The first turn is a lead, and alone. True: the tenure is the lanes', and may be over already. */
static bool tenure_begin(struct tenure *t)
{
	enum batch_turn first = batch_tenure_next(&t->turns);

	ASSERT(first == TURN_LEAD);
	if (begin_turn(t, first))
		return true;
	tenure_free(t);
	return false;
}

/* ---- where they come from ---- */

static bool batches_begin(void *context, struct due due)
{
	struct batches *batches = context;
	struct tenure *t = feeder_is_closed(&batches->feeder) ? NULL : tenure_new(batches, due.subject, BATCHES_MAX);

	if (!t) { /* it rests, under way: without room it would be found again, and again */
		feeder_ended(&batches->feeder, due.subject, FEEDER_REST_MS);
		return true;
	}
	t->fed = true;
	batch_tenure_init(&t->turns, due.subject, /* hold= */ NULL);
	return tenure_begin(t);
}

void batches_take(struct batches *batches, int64_t subject)
{
	feeder_offer(&batches->feeder, subject);
}

/* The feeder need not know: it has lost the batch to this fence, or will. */
bool batches_tear_down(struct batches *batches, const struct batch_hold *hold, void (*done)(void *context),
		       void *context)
{
	struct tenure *t = tenure_new(batches, hold->subject, 2 * (size_t)BATCHES_MAX);

	if (!t)
		return false;
	t->done = done;
	t->context = context;
	batch_tenure_init(&t->turns, hold->subject, hold);
	keep_texts(t);
	return tenure_begin(t);
}

void batches_drain(struct batches *batches, int64_t wait_ms)
{
	struct mono_time until = mono_add_ms(clock_mono(batches->feeder.parts->clock), wait_ms);

	feeder_close(&batches->feeder);
	while (atomic_load(&batches->tenures_n) && clock_mono(batches->feeder.parts->clock).ns < until.ns)
		nanosleep(&(struct timespec){.tv_nsec = DRAIN_LOOK_MS * 1000000}, NULL);
}

static void batches_prepare(void *part, struct engine_parts *parts)
{
	struct batches *batches = part;

	batches->policy = (struct batch_policy){parts->config->lease_ms, machine_of, batches, fence_floor};
	parts->batches = batches;
	parts->batch_policy = &batches->policy;
}

static void batches_release(void *part)
{
	struct batches *batches = part;

	ASSERT(atomic_load(&batches->tenures_n) == 0); /* the lanes have ended every turn */
}

const struct feed batches_feed = {&batch_due_source,
				  BATCHES_MAX,
				  BATCHES_SLICE,
				  batches_begin,
				  .size = sizeof(struct batches),
				  .prepare = batches_prepare,
				  .release = batches_release};
