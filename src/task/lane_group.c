/*
 * The lane's groups: from those who want to commit, through one transaction, to their answers.
 *
 *   pending ── gather ──▶ in hand ── group_run ──▶ answered
 *                             │ later
 *                             └──▶ up: written, and the disk is at it ── lane_land ──▶ answered
 *
 * Where the store has its log synced aside (db->may_be_later), and many wait, they go in two parts: while the disk makes one of them
 * durable, the other is computed. Of P units, each e, and a disk that takes s for a sync however much there is, together
 *
 *     P / (P e + s)   a second if they go as one, and   (P / 2) / max(P e / 2, s)   in two parts: more if P e > s
 *
 * So few go together, and on a slow disk not so few; and then their commit waits for the disk in this thread, since there is nothing
 * to do meanwhile. With 1 ms added to each sync, 256 under way: 1.35 times as much in two parts, 64: 0.85.
 *
 * At most one group is up and one in hand; they are answered in the order in which they were committed.
 */
#include "task/lane_parts.h"

#define GROUP_LEAST_MS 500 /* of one that is begun, however little time is left to those in it */
#define LOCK_SLICE_MS 100  /* how long SQLite's write lock is waited for before others are looked after */

/* Two groups are dearer than one: pages that both change are written twice, another thread is woken. */
#define PARTS_WORTH(ns) ((ns) + (ns) / 2 + 200000)
/* A number that changes, lately. */
#define LATELY(old, now) ((old) ? ((old)*7 + (now)) / 8 : (now))

/* ---- units ---- */

struct unit *lane_unit_take(struct lane *lane)
{
	return lane->spare_n ? lane->spare[--lane->spare_n] : NULL;
}

void lane_unit_give_back(struct lane *lane, struct unit *unit)
{
	if (unit)
		lane->spare[lane->spare_n++] = unit;
}

void lane_units_let_go(struct lane *lane)
{
	for (struct seat *seat = lane->pending.first; seat; seat = seat->next) {
		lane_unit_give_back(lane, seat->unit);
		seat->unit = NULL;
	}
}

void lane_ask_pending(struct lane *lane)
{
	for (struct seat *seat = lane->pending.first; seat && lane->spare_n; seat = seat->next) {
		struct ask ask = {.unit = seat->unit};

		if (ask.unit)
			continue;
		ask.unit = seat->unit = lane_unit_take(lane);
		seat->task->kind->ask(seat->task, &ask);
		ASSERT(ask.kind == ASK_COMMIT);
	}
}

/* ---- what a group tells ---- */

static struct lane *lane_of(struct group_sink *sink)
{
	return (struct lane *)((char *)sink - offsetof(struct lane, sink));
}

static void lane_sink_answer(struct group_sink *sink, size_t i, const struct unit_result *result)
{
	struct lane *lane = lane_of(sink);

	lane_give(lane, lane->hand->seats[i],
		  &(struct answer){.kind = ANSWER_COMMIT, .result = result, .sent = lane->hand->sent});
}

static void lane_sink_wake(struct group_sink *sink, int64_t topic)
{
	struct lane *lane = lane_of(sink);

	lane_wake_topic(lane, topic);
	if (lane->peers_n || lane->options.woke)
		lane->woken[lane->woken_n++] = topic;
}

static void sink_offer(struct group_sink *sink, struct offer offer)
{
	lane_pass_offer(lane_of(sink), (struct passed_offer){.offer = offer});
}

static bool sink_elsewhere(struct group_sink *sink, size_t i)
{
	struct lane *lane = lane_of(sink);

	if (!lane_leave_group(lane, lane->hand->seats[i], lane->hand->units[i]))
		return false;
	lane_unit_give_back(lane, lane->hand->units[i]);
	lane->hand->units[i] = NULL; /* no result of this group is its */
	return true;
}

void lane_groups_init(struct lane *lane)
{
	lane->sink = (struct group_sink){lane_sink_answer, lane_sink_wake, lane->options.aside ? sink_elsewhere : NULL,
					 sink_offer};
	lane->hand = &lane->flights[0];
	for (size_t i = 0; i < sizeof lane->flights / sizeof *lane->flights; i++)
		arena_init(&lane->flights[i].arena, GROUP_BYTES_MAX);
	for (size_t i = LANE_UNITS_MAX; i-- > 0;)
		lane_unit_give_back(lane, &lane->units[i]);
}

void lane_groups_release(struct lane *lane)
{
	for (size_t i = 0; i < sizeof lane->flights / sizeof *lane->flights; i++)
		arena_release(&lane->flights[i].arena);
}

/* ---- one in hand ---- */

/* How many of those who wait go now. Two parts of about the same size: the disk is at one for as long as the other takes. */
static size_t part_of_pending(const struct lane *lane)
{
	size_t n = lane->pending_n, up_n = lane->up ? lane->up->n : 0;
	bool parts = lane->db->may_be_later && up_n < n / 4 &&
		     (int64_t)n * lane->unit_ns > PARTS_WORTH(lane->durable_ns);

	return parts && n / 2 < GROUP_UNITS_MAX ? n / 2 : GROUP_UNITS_MAX;
}

/* Moves the next group out of the pending list. */
static size_t gather(struct lane *lane)
{
	static _Thread_local struct unit *looked_at[LANE_LOOKED_AT];
	static _Thread_local size_t picked[GROUP_UNITS_MAX];
	struct flight *hand = lane->hand;
	struct seat **at = &lane->pending.first;
	size_t n = 0, i = 0, picked_n;

	for (struct seat *seat = *at; seat && seat->unit && n < LANE_LOOKED_AT; seat = seat->next)
		looked_at[n++] = seat->unit;
	picked_n = group_pick(lane_table(lane), looked_at, n, part_of_pending(lane), picked);
	for (size_t p = 0; p < picked_n; i++) {
		struct seat *seat = *at;

		if (i == picked[p]) {
			hand->seats[p] = seat;
			hand->units[p++] = seat->unit;
			seat->unit = NULL;
			*at = seat->next;
		} else {
			at = &seat->next;
		}
	}
	while (*at)
		at = &(*at)->next;
	lane->pending.last = at;
	lane->pending_n -= picked_n;
	return picked_n;
}

/* The latest moment that somebody in the group can wait for; ns 0: nobody waits. */
static struct mono_time group_deadline(const struct lane *lane, size_t n)
{
	int64_t budget_ms = lane->options.store_timeout_ms;
	struct mono_time sent = lane->hand->sent, latest = {0}, most = mono_add_ms(sent, budget_ms),
			 least = mono_add_ms(sent, budget_ms < GROUP_LEAST_MS ? budget_ms : GROUP_LEAST_MS);
	bool bounded = false;

	for (size_t i = 0; i < n; i++) {
		const struct seat *seat = lane->hand->seats[i];

		bounded |= seat->bounded;
		if (seat->bounded && seat->by.ns > latest.ns)
			latest = seat->by;
	}
	/* Who has longer, because an action has answered, does not make the others of one transaction wait for it. */
	if (bounded && budget_ms && latest.ns > most.ns)
		latest = most;
	return !bounded || latest.ns > least.ns ? latest : least;
}

struct group *lane_hand_begin(struct lane *lane, size_t n)
{
	struct flight *hand = lane->hand;
	struct group *group = &hand->group;

	hand->n = n;
	hand->sent = clock_mono(lane->options.clock);
	lane->between_ns = 0;
	group_init(group, hand->units, hand->results, n);
	group->by = group_deadline(lane, n);
	if (lane->db->driver->one_writer && lane->options.store_timeout_ms)
		group->begin_by = mono_add_ms(hand->sent, LOCK_SLICE_MS);
	return group;
}

static bool group_only_reads(const struct lane *lane, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!unit_only_reads(lane->hand->units[i]))
			return false;
	return true;
}

static void note_pace(struct lane *lane, size_t n)
{
	int64_t disk_ns = atomic_load(&lane->db->durable_ns),
		took_ns = clock_mono(lane->options.clock).ns - lane->hand->sent.ns - lane->between_ns;

	if (lane->hand->group.phase != GROUP_WRITTEN) /* it has waited for the disk */
		took_ns -= disk_ns;
	lane->unit_ns = LATELY(lane->unit_ns, took_ns / (int64_t)n);
	lane->durable_ns = LATELY(lane->durable_ns, disk_ns);
}

/* False: another program has the write lock, and nothing was done. */
static bool run_group(struct lane *lane, size_t n)
{
	struct group *group = lane_hand_begin(lane, n);

	lane->db->patience.reads = group_only_reads(lane, n);
	group->later = lane->db->may_be_later && (lane->up || lane->pending.first);
	/* What fails of its data is told so at once, perhaps because of a row that is not durable. Of many, halves find it, after all before. */
	group->later &= n > 1; /* mutant: unit-alone-later */
	if (!group_run(group, lane->db, &lane->hand->arena, lane->options.resolve_ms, &lane->sink, &lane->stats.group))
		return false;
	if (lane->db->may_be_later && !lane->db->patience.reads)
		note_pace(lane, n);
	return true;
}

/* Back to where it came from, in its order: all of the group, or but what only reads. Returns how much stays. */
static size_t put_back(struct lane *lane, size_t n, bool reads_too)
{
	struct flight *hand = lane->hand;
	struct seat *back = NULL, **end = &back;
	size_t stays_n = 0;

	for (size_t i = 0; i < n; i++) {
		struct seat *seat = hand->seats[i];

		if (!reads_too && unit_only_reads(hand->units[i])) {
			hand->units[stays_n] = hand->units[i];
			hand->seats[stays_n++] = seat;
			continue;
		}
		seat->unit = hand->units[i];
		*end = seat;
		end = &seat->next;
	}
	if (stays_n == n)
		return n;
	*end = lane->pending.first;
	if (!lane->pending.first)
		lane->pending.last = end;
	lane->pending.first = back;
	lane->pending_n += n - stays_n;
	return stays_n;
}

/* While another program writes, reads are served, and writers wait in the lane, where their time can end. Returns how many were run. */
static size_t run_group_or_its_reads(struct lane *lane, size_t n)
{
	size_t reads_n;

	if (run_group(lane, n)) {
		if (!lane->db->patience.reads)
			lane_note_unlocked(lane);
		return n;
	}
	lane_note_locked(lane);
	reads_n = put_back(lane, n, /* reads_too= */ false);
	if (reads_n && !run_group(lane, reads_n))
		reads_n = put_back(lane, reads_n, /* reads_too= */ true);
	return reads_n;
}

void lane_hand_over(struct lane *lane, bool told)
{
	struct flight *hand = lane->hand;

	if (told && (lane->stats.group.failed != lane->failed_before || trouble_is_on(&lane->trouble)))
		trouble_note(&lane->trouble, hand->units, hand->results, hand->n, clock_mono(lane->options.clock));
	lane->failed_before = lane->stats.group.failed;
	lane_tell_peers(lane);
	for (size_t i = 0; i < hand->n; i++)
		lane_unit_give_back(lane, hand->units[i]);
	hand->n = 0;
	arena_reset(&hand->arena);
}

/* ---- one that is up ---- */

void lane_land(struct lane *lane, bool wait)
{
	struct flight *hand = lane->hand, *up = lane->up;
	uint64_t failed_before;
	bool may = up != NULL;

	may = may && lane->db->driver->durable(lane->db, up->committed, wait); /* mutant: landed-too-soon */
	if (!may)
		return;
	lane_tell_peers(lane); /* there is room for the wakes of one group */
	lane->up = NULL;
	lane->hand = up;
	group_land(&up->group, lane->db, &lane->sink, &lane->stats.group);
	/* What has failed meanwhile is of the group in hand. */
	failed_before = lane->failed_before;
	lane->failed_before = lane->stats.group.failed;
	lane_hand_over(lane, /* told= */ true);
	lane->failed_before = failed_before;
	lane->hand = hand;
}

/* So they are back when this group is through; else the lane would wait for them then. */
void lane_between(void *context)
{
	struct lane *lane = context;
	struct mono_time began;

	if (!lane->up || !lane->db->driver->durable(lane->db, lane->up->committed, /* wait= */ false))
		return;
	began = clock_mono(lane->options.clock);
	lane_land(lane, /* wait= */ false);
	lane_ask_pending(lane); /* first who has waited longer for the units that are free now */
	lane_resume_ready(lane);
	lane->between_ns += clock_mono(lane->options.clock).ns - began.ns;
}

/* What was before it comes first; then the other one is free for what comes next. */
static void take_off(struct lane *lane)
{
	struct flight *hand = lane->hand;

	hand->committed = lane->db->committed;
	lane_land(lane, /* wait= */ true);
	lane->up = hand;
	lane->hand = hand == &lane->flights[0] ? &lane->flights[1] : &lane->flights[0];
}

void lane_commit_round(struct lane *lane)
{
	size_t n = gather(lane);

	if (lane->locked_since.ns) /* another program may keep us for a while */
		lane_land(lane, /* wait= */ true);
	lane->hand->n = n ? run_group_or_its_reads(lane, n) : 0;
	if (lane->hand->n && lane->hand->group.phase == GROUP_WRITTEN)
		take_off(lane);
	else
		lane_hand_over(lane, /* told= */ n > 0);
	/* What has only read is durable with what was before it, and nobody tells; nor does anybody twice. */
	lane_land(lane, /* wait= */ false);
	lane->stats.waiting = lane->pending_n + lane->aside_n;
	lane->stats.rounds++;
	lane->db->driver->tend(lane->db, /* idle= */ false);
}
