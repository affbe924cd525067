/*
 * What other threads have to say to a lane: seats to take in, answers of actions, results of beats, wakes.
 *
 * Bounded: seats of callers by seats_max, the node's own by whoever puts them, answers and beats by the actions
 * under way (one each), wakes by WAKES_MAX and offers by OFFERS_MAX, beyond which everybody is woken (a wake is a hint; one too many
 * costs a read).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "task/lane.h"

#define WAKES_MAX 1024
#define OFFERS_MAX 256

/* An offer on its way from lane to lane. */
struct passed_offer {
	struct offer offer;
	bool heard;    /* from another node, which has told all others */
	uint64_t been; /* bit i: it was in the lane with this number */
};

/* An answer (of an action or of a beat) on its way to the seat with that number. */
struct mail {
	struct mail *next;
	uint64_t number;
	bool is_beat;
	struct errand *errand;    /* not NULL: it has come back, and this is all that counts */
	enum act_outcome outcome; /* of an action */
	int64_t not_before_ms;    /* of an action */
	enum hx_code code;        /* of a beat */
	struct mono_time sent;    /* of a beat */
	size_t output_bytes;
	char output[];
};

/* One taking out: lists in order of arrival. */
struct mailbag {
	struct seat *seats;
	struct mail *mail;
	size_t wakes_n;
	bool wake_everybody;
	bool stopping;
	int64_t wakes[WAKES_MAX];
	size_t offers_n;
	struct passed_offer offers[OFFERS_MAX];
};

struct inbox {
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	bool waiting; /* the lane sleeps: a signal is needed */
	bool nudged;
	bool stopping;
	_Atomic size_t
		seats_n; /* callers', in the inbox and in the lane; raised under the mutex, lowered by the lane */
	size_t seats_max;
	struct clock *clock; /* constant, as is: */
	int64_t budget_ms;   /* of callers' asks, from their arrival; 0: none */
	struct seat *first_seat, **last_seat;
	struct mail *first_mail, **last_mail;
	size_t arrived_n; /* seats and mail that are here */
	size_t wakes_n;
	bool wake_everybody;
	int64_t wakes[WAKES_MAX];
	size_t offers_n;
	struct passed_offer offers[OFFERS_MAX];
	struct lane_stats stats; /* the lane's, as of its last taking out */
};

void inbox_init(struct inbox *inbox, size_t seats_max, struct clock *clock, int64_t budget_ms);
void inbox_release(struct inbox *inbox);
enum hx_code inbox_put_seat(struct inbox *inbox, struct seat *seat);
/* One of the node itself: a full lane takes it too, and it takes nobody's seat. HX_STOPPING is the only refusal. */
enum hx_code inbox_put_own(struct inbox *inbox, struct seat *seat);
/* A beat is the node's own, and is always taken: renewing must work while the lane drains, too. */
void inbox_put_beat(struct inbox *inbox, struct seat *seat);
void inbox_put_mail(struct inbox *inbox, struct mail *mail);
void inbox_put_wakes(struct inbox *inbox, const int64_t topics[], size_t n);
/* False: there was no room, and everybody of the lane is woken instead. Those of other lanes have yet to hear of it. */
bool inbox_put_offer(struct inbox *inbox, const struct passed_offer *offer) HX_MUST_CHECK;
void inbox_put_wake_everybody(struct inbox *inbox);
void inbox_nudge(struct inbox *inbox);
void inbox_stop(struct inbox *inbox);
/*
 * Takes everything out. With wait_ns > 0 and nothing there, waits that long at most (INT64_MAX: for ever).
 * False: the time passed and nothing came.
 */
bool inbox_take(struct inbox *inbox, int64_t wait_ns, const struct lane_stats *stats, struct mailbag *ret_bag);
/* Those whose time is over before they were taken out, in order of arrival. */
struct seat *inbox_take_late(struct inbox *inbox, struct mono_time now);
bool inbox_is_stopping(struct inbox *inbox);
/* A caller's seat (not `own`) has left the lane. Before its owner hears of it: who is told may come back at once. */
void inbox_leave(struct inbox *inbox);
