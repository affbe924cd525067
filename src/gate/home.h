/*
 * A store for gate records with all that it needs, out of its URL: for whoever has none yet (`hapax gate`, an embedding
 * program). The engine, which has lanes already, does not need it.
 *
 *   memory:                          nothing else
 *   sqlite:PATH, sqlite::memory:     PATH.lock, the gate's tables brought up to date, one lane
 *   postgres://…                     the gate's tables brought up to date, some lanes
 *   redis://…                        a thread of its own
 *
 * and the sweep, if there is to be one.
 */
#pragma once

#include "gate/held.h"
#include "gate/store.h"
#include "task/sentinel.h"

struct gate_home;

#define GATE_STORE_TIMEOUT_MS 2000 /* where nobody says otherwise */

struct gate_home_options {
	const char *url;          /* must outlive it */
	int64_t sweep_every_ms;   /* 0: never */
	struct gate_held *held;   /* counts what is held; NULL: nobody wants to know. Must outlive it */
	bool recall;              /* see gate_store_recall() */
	bool no_migrate;          /* refuse a database whose schema is not up to date */
	int64_t store_timeout_ms; /* of each ask */
	struct clock *clock;
	struct log *log; /* for what a database fails of; may be NULL */
};

/* What is left of acknowledged records when the process, or the machine, dies. */
enum gate_lasting {
	GATE_LASTS,
	GATE_MAY_BE_LOST, /* a Redis that does not sync every write, or does not say whether it does */
	GATE_ENDS_WITH_US,
};

/*
 * HX_CONFIG_ERROR: the url cannot be read, or a Redis refuses us. HX_BUSY: another process has the SQLite file.
 * HX_SCHEMA_MISMATCH. HX_STORE_UNAVAILABLE: it cannot be reached; later, once it was, that is for whoever asks.
 */
enum hx_code gate_home_open(const struct gate_home_options *options, struct gate_home **ret_home,
			    struct hx_error *err) HX_MUST_CHECK;
struct gate_store *gate_home_store(struct gate_home *home);
/* For units that carry a record along with work of their own; NULL where the store is no database. */
const struct lanes *gate_home_lanes(const struct gate_home *home);
enum gate_lasting gate_home_lasting(const struct gate_home *home);
/* Is the store there? NULL where it is no database: then an ask of the store tells, at once when it is down. */
struct sentinel *gate_home_sentinel(const struct gate_home *home);
/* Nobody asks any more. What still waits is answered, with drain_ms to be done. Takes NULL. */
void gate_home_close(struct gate_home *home, int64_t drain_ms);
