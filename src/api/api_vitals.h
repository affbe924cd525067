/*
 * GET /api/v1/vitals: how this node does, and how it did in the last hour, for the page Health. Numbers that /metrics has, too, for those
 * who have no Prometheus beside it.
 *
 *   counters of the lanes, the port, the server ──▶ every VITALS_EVERY_MS the difference, as a row of a ring ──▶ whoever asks
 *
 * The ring is of this process alone, and has a fixed size: an hour, whatever happens. Whoever keeps more has a Prometheus. A row costs
 * one look at counters that are there anyway; the store is asked once a minute how large it is, and by who asks here for the nodes on it.
 */
#pragma once

#include "serve/router.h"

#define VITALS_EVERY_MS 10000
#define VITALS_ROWS 360

struct api;
struct http_server;
struct vitals;

/* NULL without memory. The api outlives it. */
struct vitals *vitals_new(struct api *api);
/* From now on rows are taken; without a thread there are none. The server outlives it. */
void vitals_start(struct vitals *vitals, struct http_server *server);
/* No more rows. Before the engine is stopped, which brings back what was asked of it. Takes NULL. */
void vitals_stop(struct vitals *vitals);
/* After that. Takes NULL. */
void vitals_free(struct vitals *vitals);

void api_vitals(struct http_call *call);
