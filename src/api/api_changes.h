/*
 * GET /api/v1/changes: a stream of server-sent events for pages that are open, so that they need not ask again and again. An event says
 * that something has changed, and nothing about what: whoever hears it asks the API for what he shows, as himself.
 *
 *   commits of this node, wakes that others have told ──▶ a mark that only grows ◀── looks, twice a second ── the thread ──▶ streams
 *
 * A commit knows nothing of streams: the mark is made of counters that it raises anyway. So thousands of changes in a moment are one
 * event, a page that is open costs a push nothing, and without pages the thread sleeps. The id of an event is the mark, with a number
 * of this process before it; whoever comes back with the last one he saw (Last-Event-ID, or he remembers) knows whether he missed
 * something. A stream ends after CHANGES_MS, when its client has gone or does not read, and when the server stops; pages come back by
 * themselves, and are then judged anew.
 */
#pragma once

#include "serve/router.h"

#define CHANGES_STREAMS_MAX 2000
#define CHANGES_MS 300000

struct api;
struct changes;

/* NULL without memory, or without a thread. The api outlives it. */
struct changes *changes_new(struct api *api);
/* Ends all streams. Takes NULL. */
void changes_free(struct changes *changes);

void api_changes(struct http_call *call);
