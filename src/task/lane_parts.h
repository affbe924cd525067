/*
 * What the files of the lane share: lane.c, its thread and its rounds, lane_group.c, its groups, lane_acts.c, the actions under way and their
 * leases, lane_topics.c and lane_stands.c, who is woken, and lane_wait.c, who waits for the store no longer. All of it is for the
 * lane's thread. Nobody else includes this.
 */
#pragma once

#include "base/id.h"
#include "base/thread.h"
#include "task/aside.h"
#include "task/inbox.h"
#include "task/lane.h"
#include "task/trouble.h"

#define LANE_BUCKETS 1024
#define LANE_LOOKED_AT (2 * GROUP_UNITS_MAX)              /* of those who wait: how far group_pick sees */
#define LANE_UNITS_MAX (LANE_LOOKED_AT + GROUP_UNITS_MAX) /* and one group is up */
#define GROUP_BYTES_MAX (256u << 20)
#define LANE_PEERS_MAX 64

struct seat_list {
	struct seat *first, **last;
};

/* A group, and all that is its own until it has been answered. */
struct flight {
	struct group group;
	size_t n;
	struct mono_time sent; /* before it was begun */
	uint64_t committed;    /* its number, once it is up */
	struct arena arena;
	struct unit *units[GROUP_UNITS_MAX];
	struct seat *seats[GROUP_UNITS_MAX];
	struct unit_result results[GROUP_UNITS_MAX];
};

struct lane {
	struct lane_options options;
	struct db *db;
	struct id_source ids;
	_Atomic uint32_t node_number;
	struct inbox inbox;
	struct thread thread;

	struct seat_list ready;
	struct seat_list pending;
	struct seat_list limited;               /* units with a limit, that are run here */
	struct seat_list held;                  /* wait for a unit of theirs that is aside */
	struct errand_key *aside[LANE_BUCKETS]; /* the subjects of the units that are aside */
	size_t aside_n;                         /* of these units */
	struct timers timers;
	struct seat *topics[LANE_BUCKETS];
	struct stand *stands[LANE_BUCKETS];
	/* How many seats are in these buckets, for other lanes: whom nobody waits for here need not be told here. */
	_Atomic uint32_t topics_n[LANE_BUCKETS], places_n[LANE_BUCKETS];
	struct seat *acting[LANE_BUCKETS];
	uint64_t last_number;
	bool acts_owed;   /* something was started and not flushed */
	size_t seats_in;  /* taken in and not yet done */
	size_t beats_out; /* sent to the pulse lane and not yet back */
	size_t pending_n;
	bool stopping;
	struct mono_time stop_by;
	int64_t drain_ms;

	struct unit *units;                 /* a pool of LANE_UNITS_MAX */
	struct unit *spare[LANE_UNITS_MAX]; /* of them; what was given back last is taken first */
	size_t spare_n;
	struct flight flights[2], *hand, *up; /* lane_group.c; up NULL: none */
	int64_t unit_ns, durable_ns;          /* lately: a unit of a group takes, and then the disk */
	int64_t between_ns;                   /* of the group in hand: spent on the one that was up */
	uint64_t failed_before;               /* of stats.group, up to the group before */
	struct group_sink sink;
	int64_t woken[GROUP_UNITS_MAX * UNIT_WAKES_MAX]; /* by this round, for the peers */
	size_t woken_n;
	struct lane *peers[LANE_PEERS_MAX];
	size_t peers_n;
	struct lane_stats stats;
	struct trouble trouble;
	struct mailbag bag;
	struct unit_result refusal; /* what a unit is told that was never sent */
	struct mono_time tick_next, hurry_by;
	struct mono_time locked_since; /* another program has the write lock; ns 0: it has not */
	bool locked_told;
	struct group_table table; /* of PostgreSQL's lanes; others never touch its memory */
};

/* What group_pick() wants: a store that runs units one after the other has none. */
static inline struct group_table *lane_table(struct lane *lane)
{
	return lane->db->driver->one_unit_per_subject ? &lane->table : NULL;
}

static inline size_t lane_bucket(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u >> 54;
}

/* ---- lane_valid.c ---- */

#ifdef HX_DEBUG
void lane_assert_valid(const struct lane *lane);
#else
static inline void lane_assert_valid(const struct lane *lane)
{
	(void)lane;
}
#endif

/* ---- lane_topics.c ---- */

/* Of a seat that has one. */
void lane_topic_enter(struct lane *lane, struct seat *seat);
void lane_topic_leave(struct lane *lane, struct seat *seat);
void lane_wake_all_here(struct lane *lane);

/* ---- lane_stands.c ---- */

/* A seat with places comes in, has been woken out of its sleep, leaves. */
void lane_places_enter(struct lane *lane, struct seat *seat);
void lane_places_wake(struct seat *seat);
void lane_places_leave(struct lane *lane, struct seat *seat);
/*
 * It wants to sleep. False: it was offered something since it began to look, and looks again. Otherwise until when: till then
 * if it is the one that looks by time, else as long as it can.
 */
bool lane_places_sleep(struct lane *lane, struct seat *seat, const struct ask *ask, struct mono_time *ret_until);
/* Offers it here, then to a lane that it has not been in, then to other nodes. */
void lane_pass_offer(struct lane *lane, struct passed_offer offer);

/* ---- lane.c ---- */

/* Ends a sleep. */
void lane_end_sleep(struct lane *lane, struct seat *seat);

/* The seat has its answer, and is ready. */
void lane_give(struct lane *lane, struct seat *seat, struct answer *answer);
/* The seat leaves the lane. */
void lane_finish(struct lane *lane, struct seat *seat, enum hx_code code);

/* The same without: it is then for the caller to ask it. */
void lane_answer_seat(struct lane *lane, struct seat *seat, struct answer *answer);
/* A seat comes into the lane. It still has to be given its start. */
void lane_enter(struct lane *lane, struct seat *seat);
/* Asks all who are ready. */
void lane_resume_ready(struct lane *lane);
/* Does what the seat asks for. `unit`, of the pool: where what it wants to commit stands; taken over. NULL: it is asked once more. */
void lane_carry_out(struct lane *lane, struct seat *seat, const struct ask *ask, struct unit *unit);

void lane_list_init(struct seat_list *list);
void lane_list_push(struct seat_list *list, struct seat *seat);
struct seat *lane_list_pop(struct seat_list *list);
void lane_wake_topic(struct lane *lane, int64_t topic);
/* After a commit: what it has woken is told to the other lanes and nodes. */
void lane_tell_peers(struct lane *lane);

/* ---- lane_group.c ---- */

void lane_groups_init(struct lane *lane);
void lane_groups_release(struct lane *lane);
/* From the pool; NULL: it is empty. Back into it; takes NULL. */
struct unit *lane_unit_take(struct lane *lane);
void lane_unit_give_back(struct lane *lane, struct unit *unit);
/* Those who wait to commit have none any more. Those who have none are asked once more what they want to commit. */
void lane_units_let_go(struct lane *lane);
void lane_ask_pending(struct lane *lane);
/* A transaction for those who wait. */
void lane_commit_round(struct lane *lane);
/* Answers the group that is up, if there is one and the disk has it. */
void lane_land(struct lane *lane, bool wait);
/* In the middle of a group: the same, and those who were answered go on. */
void lane_between(void *lane);
/* A group of the first n in hand, with its deadlines; and after it: `told`, if it was run. */
struct group *lane_hand_begin(struct lane *lane, size_t n);
void lane_hand_over(struct lane *lane, bool told);

/* ---- lane_limited.c ---- */

/* Takes the seat over that wants to commit this unit, which stays the caller's. False: it is one for the next group. */
bool lane_limited_take(struct lane *lane, struct seat *seat, const struct unit *unit);
/* The next of those that are run here, if there are any. */
void lane_limited_round(struct lane *lane);
/*
 * The seat's unit waits for a lock: it goes aside, or waits for the one before it that has gone there for the same subject. False:
 * it cannot, or there is nobody.
 */
bool lane_leave_group(struct lane *lane, struct seat *seat, const struct unit *unit);
/* One that was aside has come back. Takes both. */
void lane_errand_back(struct lane *lane, struct mail *mail);

/* ---- lane_wait.c ---- */

/* When the connection is the lane's. */
void lane_wait_init(struct lane *lane);
/* An answer is given; the seat asks the store. */
void lane_wait_heard(struct lane *lane, struct seat *seat, const struct answer *answer);
void lane_wait_asks(struct lane *lane, struct seat *seat);
/* From now on the lane is stopping. */
void lane_wait_stopping(struct lane *lane);
/* Takes those out of `pending` whose time is over. */
void lane_refuse_late(struct lane *lane);
/* In the middle of a wait for the store: the same, and for those who have not been taken in. */
void lane_tick(void *lane);
void lane_note_locked(struct lane *lane);
void lane_note_unlocked(struct lane *lane);

/* ---- lane_acts.c ---- */

void lane_act_start(struct lane *lane, struct seat *seat, const struct act_call *call);
/* Of a seat that acts: its lease is to be renewed, or over. */
void lane_act_timer_fired(struct lane *lane, struct seat *seat);
/* An answer of the port's, or a beat that has come back. Takes the mail. */
void lane_act_open_mail(struct lane *lane, struct mail *mail);
/* The drain time is over: whoever is still acting is left as a crash would leave it. */
void lane_act_flush(struct lane *lane);
void lane_act_drop_all(struct lane *lane);
