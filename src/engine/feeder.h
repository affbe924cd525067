/*
 * The feeder: finds what is due and has it begun, each thing at most once at a time on this node, a bounded number of them.
 * Each row of feeds[] (engine.c) is fed by one, and so is each kind that retention lets go. A part of the engine that
 * is a feeder, and what its work needs besides, is one block of memory which begins with the feeder (feeder_new()):
 * engine.c starts, closes and frees all of these alike.
 *
 *   watch (flow/due_watch.h) ─ ids ─▶ begin() for each that is not under way here … feeder_ended() ─▶ watch again
 *
 *  F1  An id is under way from begin() (or feeder_take()) to feeder_ended(), and is not begun again in between.
 *  F2  The watch runs, or so much is under way that the next slice might not fit; then the next that ends starts it.
 *  F3  What was found and is still due when the watch looks again is found again: nothing that is due is forgotten, and
 *      nobody has to remember it.
 *
 *  F4  What is found of a shared source (due_watch.h) takes a place of its workspace (places.h) for as long as it is at work. A
 *      workspace that may take no more is passed over. That look is a walk past all that it has due, so it is taken only so often
 *      that it costs a tenth of the lane at most; in between the watch looks for everybody, as soon as places were given back.
 *
 * While it finds nothing new, it looks less and less often, down to every PAUSE_MAX_MS: claims take a moment, and what
 * nobody can begin (rests) stays due. A wake on the source's topic ends the pause.
 *
 * Known limit: more than DUE_WATCH_MAX − slice things that are under way and stay due hide those that fell due after them.
 * At most FEEDER_RESTING_MAX do so for long.
 */
#pragma once

#include <pthread.h>

#include "base/id_set.h"
#include "engine/parts.h"
#include "engine/places.h"
#include "flow/due_watch.h"
#include "task/lanes.h"

#define FEEDER_RESTING_MAX 512
#define FEEDER_PASS_MS 100 /* between two looks that pass somebody over, at least */
#define FEEDER_REST_MS 500 /* what cannot be begun now, because its definition is being fetched, say */

/* What is fed, and how much of it. */
struct feed {
	const struct due_source *source;
	size_t under_way_max; /* at least slice and FEEDER_RESTING_MAX, with those that rest; of a shared source, without them */
	size_t slice; /* found at once */
	/* In a lane's thread. Starts work on it, which ends with one feeder_ended(). False: it cannot now, and has not. */
	bool (*begin)(void *context, struct due due);
	struct slice (*left)(const void *context); /* of the source */
	/* Of feeder_new(). */
	size_t size;
	void (*prepare)(void *part,
			struct engine_parts *parts); /* before anything is found; makes itself known. May be NULL */
	void (*release)(void *part);                 /* what prepare made. May be NULL */
};

struct feeder {
	struct feed feed;
	struct due_source source;
	const struct engine_parts *parts; /* of these only lanes and clock are the feeder's */
	void *context;
	struct seat seat;
	struct due_watch watch;
	pthread_mutex_t mutex; /* over what follows: work ends in any lane's thread */
	bool watching;
	_Atomic bool closed; /* nothing new is begun any more */
	int64_t pause_ms;
	_Atomic int64_t told_ns; /* when what cannot be begun was told last; not under the mutex */
	struct id_set under_way; /* with whose place each has; 0: none */
	struct places places;    /* of a shared source */
	char full[1024];         /* for the watch: whom it passes over */
	struct mono_time pass_next;
	size_t given_back; /* places, since the watch began */
	/* Those that rest, in the order in which they may be begun again; they are under way. */
	size_t resting_n;
	struct {
		int64_t subject;
		struct mono_time until;
	} resting[FEEDER_RESTING_MAX];
};

/* Without memory: HX_NO_MEMORY, with the feed's name as its words (err may be NULL). */
enum hx_code feeder_start(struct feeder *feeder, const struct feed *feed, const struct engine_parts *parts,
			  void *context, struct hx_error *err) HX_MUST_CHECK;
/* A part of the engine: feed->size bytes, zero but for the feeder, which has begun. NULL: no memory. */
struct feeder *feeder_new(const struct feed *feed, struct engine_parts *parts, struct hx_error *err);
/* After the lanes have stopped. Takes NULL. */
void feeder_free(struct feeder *part);
/* After the lanes have stopped. Safe on a zeroed struct. */
void feeder_release(struct feeder *feeder);
/*
 * From any thread: something that nobody had to look for. False: it is under way, or there is no room; a slice is always
 * kept free, so that what comes in this way never keeps the watch from looking. tenant: whose it is (unit_tenant()).
 */
bool feeder_take(struct feeder *feeder, int64_t subject, uint64_t tenant);
bool feeder_has_room(struct feeder *feeder, uint64_t tenant);
/* What was taken under a name of its own (below 0), because it had no id yet, has this one. False: that is under way, and the name stays. */
bool feeder_name(struct feeder *feeder, int64_t name, int64_t subject);
/* From any thread: takes it, for nobody in particular, and begins it. */
void feeder_offer(struct feeder *feeder, int64_t subject);
/* From any thread: from now on nothing new is begun; what is under way goes on. Takes NULL. */
void feeder_close(struct feeder *feeder);
bool feeder_is_closed(struct feeder *feeder);
/*
 * How long something rests that ended with this code: what could not be begun, or is held, may still be due. 0: not at
 * all.
 */
int64_t feeder_rest_ms(enum hx_code code);
/*
 * What cannot be begun is tried again and again, and one line of the log now and then is enough. True: it is time for
 * one.
 */
bool feeder_may_tell(struct feeder *feeder);
/*
 * From any thread. rest_ms: for so long it is not begun again, although it may be due; a feeder gives 0, or always the
 * same.
 */
void feeder_ended(struct feeder *feeder, int64_t subject, int64_t rest_ms);

/* Something under way that is one task after another: memory of its own, which begins with this. */
struct fed {
	struct seat seat;
	struct feeder *feeder;
	int64_t subject, beside; /* in whose lane it is worked on: its own, if nobody says otherwise */
	struct arena arena;
};

/* NULL: no memory. The rest of its `size` bytes is zero. */
void *fed_new(struct feeder *feeder, int64_t subject, size_t size, size_t arena_bytes_max);
void fed_free(struct fed *fed);
/* What begin() ends with: a task of it, in the lane of `beside`. False: no lane takes it, and it is freed. */
bool fed_begin(struct fed *fed, struct task *task, void (*done)(struct seat *, enum hx_code));
/* feeder_ended(), and its memory is freed. */
void fed_end(struct fed *fed, int64_t rest_ms);
