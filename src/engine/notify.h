/*
 * Waking tasks on other nodes: what a commit on one node wakes there, it wakes on all others a moment later (PostgreSQL).
 *
 *   lane ── topics it woke ──▶ noted (a bounded set) ── thread ── NOTIFY hapax, 'token topic topic …' ──▶ other nodes
 *   lanes ◀── wake ── thread ◀── LISTEN hapax ───────────────────────────────────────────────────────────┘
 *
 * What a commit offers (task/lane.h) is told only if nobody waits for it on the node itself: 'stand:n', which wakes n of those who
 * wait at that stand on each of the others.
 *
 * Only a hint: whoever sleeps on a topic also looks by time, so a notification that is lost costs a moment and nothing else.
 * Sent at once when the last one was a while ago, otherwise together with all that is woken meanwhile; too many topics are
 * told as "all". The session is one of its own, so no commit waits for it. When it was lost it connects again, and then
 * wakes everybody here, and everybody elsewhere: nobody knows what was missed.
 */
#pragma once

#include "base/log.h"
#include "task/lanes.h"

struct engine_metrics;
struct notify;

#define NOTIFY_TOPICS_MAX 400 /* in one notification; they must fit into its payload */
#define NOTIFY_OFFERS_MAX 32  /* the same; of so many stands */

struct notify_options {
	const char *url;
	int64_t token; /* this node's: what it has told itself it does not hear */
	struct clock *clock;
	struct log *log;
	struct engine_metrics *metrics;
};

/* Connects. What is woken from now on is noted, and told once it has been started. */
enum hx_code notify_new(const struct notify_options *options, struct notify **ret_notify,
			struct hx_error *err) HX_MUST_CHECK;
enum hx_code notify_start(struct notify *notify, const struct lanes *lanes, struct hx_error *err) HX_MUST_CHECK;
/* Of lane_options: the context is the notify. */
void notify_woke(void *context, const int64_t topics[], size_t n);
void notify_offered(void *context, struct offer offer);
/* After the lanes have stopped, before they are closed: tells what was woken last. Takes NULL. */
void notify_stop(struct notify *notify);
/* After the lanes were closed. Takes NULL. */
void notify_free(struct notify *notify);
