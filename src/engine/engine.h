/*
 * The engine: everything that the API stands in front of, wired together. `hapax serve` has one, an embedding program one for each of
 * its stores (embed.h).
 *
 *   definitions   what workflows there are, in memory and in the store        (definitions.c)
 *                 with a thread that puts one, and one that loads versions that runs and batches ask for and, on
 *                 PostgreSQL, follows what other nodes put
 *   lanes         where tasks run
 *   readers       where lists and searches run, beside the lanes              (readers.c)
 *   keyring       the API keys of the store, in memory                        (keyring.c)
 *   actions       who carries out calls into the outside world
 *   nodes         this node's number for ids, and its heartbeat                (nodes.c)
 *   notify        on PostgreSQL: wakes on other nodes what a commit here wakes (notify.c)
 *   janitors      one recurring sweep per module, and the engine's own        (janitors.c)
 *   dispatcher    claims due jobs and delivers them                           (dispatcher.c)
 *   runs          seizes due runs and drives them                             (runs.c)
 *   functions     looks at due functions and lapsed turns                     (functions.c)
 *   batches       seizes due batches and works on them, or tears them down    (batches.c)
 *   retention     deletes what was finished long ago                          (retention.c)
 *   backlog       counts what is due, for metrics                             (backlog.c)
 *   sentinel      says whether the store is there                             (task/sentinel.h)
 *   entry locks   the outer door
 *   gate          records of idempotency keys, in the engine's own store, and their sweep
 *
 * Starting is all or nothing: the schema, every definition, the coverage of every claim status by a janitor are
 * checked before anything is served. Stopping drains in the reverse order.
 *
 * Thread rules: engine_* functions may be called from any thread; `done` of a seat runs in a lane's or a reader's
 * thread.
 */
#pragma once

#include <stdatomic.h>

#include "act/port.h"
#include "base/log.h"
#include "engine/parts.h"
#include "engine/tally.h"
#include "flow/entity.h"
#include "gate/entry_lock.h"
#include "gate/store.h"
#include "model/config.h"
#include "task/sentinel.h"

struct engine;
struct natives;

struct engine_options {
	const char *db_url;
	const char *node;
	size_t lanes_n;            /* on PostgreSQL */
	const char *workflows_dir; /* NULL: only what the store has */
	const struct config *config;
	bool no_migrate;
	bool loopback_allowed;         /* actions may call this machine, if the store has no API keys */
	const struct natives *natives; /* outlives the engine. NULL: none, and definitions may name any */
	bool natives_all;              /* also those that the store has may name no other (definition_natives.c) */
	size_t native_slots;           /* so many functions run at once; 0: the port's default */
	struct clock *clock;
	int64_t sweep_ms; /* how often the engine's own janitor looks; 0: by the lease */
	struct log *log;
};

/* Counters, each of which is a metric, hapax_NAME_total, and what that says. */
/* clang-format off */
#define ENGINE_COUNTERS(X) \
	X(gate_damaged, "Stored answers that are damaged, and were not given again.") \
	X(janitor_reverts, "Stuck claims that a janitor has ended.") \
	X(janitor_holds, "Stuck claims parked for a person.") \
	X(steps_fired, "Steps that were asked for.") \
	X(steps_ok, "Steps that were done.") \
	X(jobs_stale, "Calls of workers whose claim was another's by then; they changed nothing.") \
	X(jobs_delivered, "Jobs that were delivered.") \
	X(jobs_failed, "Deliveries that did not succeed.") \
	X(jobs_expired, "Jobs that retention has deleted.") \
	X(runs_created, "Runs that were created here.") \
	X(runs_driven, "Runs driven to a wait, or to their end.") \
	X(runs_taken_over, "Runs seized past another holder's time.") \
	X(runs_fenced, "Runs that were another's by the time this node came to write.") \
	X(runs_held, "Steps of runs held for a person.") \
	X(runs_in_line, "Runs that found their limit full, and stood in line.") \
	X(jobs_in_line, "Jobs that found the limit of their queue or action full, and stood in line.") \
	X(runs_expired, "Runs that retention has reduced to their key.") \
	X(batches_driven, "Batches worked on, and let go or brought to their end.") \
	X(batches_taken_over, "Batches seized past another holder's time.") \
	X(batches_fenced, "Batches that were another's by the time this node came to write.") \
	X(batches_expired, "Batches that retention has reduced to their key.") \
	X(batch_items_succeeded, "Items that were done.") \
	X(batch_items_failed, "Items that were given up.") \
	X(batch_items_unknown, "Items left for a person.") \
	X(batch_items_late, "Items done after they were cancelled or given up.") \
	X(slots_started, "Slots of schedules that were started here.") \
	X(slots_skipped, "Slots of schedules that found the one before them under way.") \
	X(slots_missed, "Slots of schedules that nobody was there for, and that are not made up for.") \
	X(notifications_sent, "Wakes told to other nodes.") \
	X(notifications_heard, "Wakes that other nodes have told.") \
	X(keys_refused, "Requests without an API key that fits and may do what was asked.") \
	X(hooks_taken, "Deliveries to hooks that were accepted.") \
	X(hooks_duplicate, "Deliveries to hooks that were seen before; nothing was done.") \
	X(hooks_declined, "Deliveries to hooks that nothing was to be done for: a run is past it, or `when` is false.") \
	X(hooks_refused, "Deliveries to hooks without a signature that fits, or to none; nothing is kept of them.") \
	X(hooks_failed, "Deliveries to hooks that were answered with another error; nothing is kept of them.") \
	X(hooks_expired, "Rows of deliveries to hooks that retention has deleted.") \
	X(bulks_expired, "Pages of bulks that retention has deleted: of each at most 5,000 items.") \
	X(entry_locked, "Calls refused by the entry lock.") \
	X(entry_lock_unavailable, "Calls let through because the lock's store was down.")

struct engine_metrics {
#define X(name, help) _Atomic uint64_t name;
	ENGINE_COUNTERS(X)
#undef X
	_Atomic uint64_t unknown_outcomes;        /* of steps of entities … */
	_Atomic uint64_t runs_unknown;            /* … and those among runs_held whose outcome nobody knows: one metric */
	_Atomic uint64_t batch_turns, nodes_live; /* not counts: how many there are now */
	_Atomic uint64_t schedule_lateness_ms;    /* nor is this: of the slot that was started last */
	_Atomic uint64_t gate_outcomes[HX_GATE_OUTCOMES];
	struct tally runs_ended;
};
/* clang-format on */

/* What a node may be called: 1 to 64 bytes without |, and not as the owner of held claims is. */
bool engine_node_is_good(const char *node);
/* Findings of definitions and configuration go into *findings; any error among them is HX_CONFIG_ERROR. */
enum hx_code engine_new(const struct engine_options *options, struct findings *findings, struct engine **ret,
			struct hx_error *err) HX_MUST_CHECK;
/* A stop is coming: no due run, batch, job or after-effect is begun by this node any more. What is under way goes on. */
void engine_begin_no_more(struct engine *engine);
/* Nothing new is taken; what runs may finish within drain_ms. */
void engine_stop(struct engine *engine, int64_t drain_ms);
void engine_free(struct engine *engine);

/* What it is made of, from engine_new() on. */
const struct engine_parts *engine_parts(const struct engine *engine);
/* A new version of a definition that somebody puts. All of it stays the caller's, who leaves it alone until done. */
struct definition_put {
	struct slice name, text;
	struct findings *findings;
	/*
	 * HX_OK: it is in the store and in force, as this version. HX_CONFIG_ERROR: refused, nothing has changed. Called
	 * in a thread of the engine's own, for which engine_stop() waits.
	 */
	void (*done)(struct definition_put *put, enum hx_code code);
	int64_t version;
	struct hx_error err;
	struct changers *changers; /* the engine's own */
};

/*
 * Starts putting it: checked alone, against the others, for coverage and by the store; all findings are told. One at
 * a time: HX_BUSY while another is under way, HX_STOPPING when the engine is ending; done is not called then.
 */
enum hx_code engine_put_definition(struct engine *engine, struct definition_put *put) HX_MUST_CHECK;
/*
 * Reads the folder again, and takes another configuration into force with it (NULL: as it is), all or nothing. Of the configuration,
 * modules and retention may be others than they were; the rest must be the same. It lives as long as the engine.
 */
enum hx_code engine_reload(struct engine *engine, const struct config *config, struct findings *findings,
			   struct hx_error *err) HX_MUST_CHECK;
const struct config *engine_config(struct engine *engine);
/* Hands a seat to the lane of this hash. */
enum hx_code engine_submit(struct engine *engine, uint64_t hash, struct seat *seat) HX_MUST_CHECK;
/* What is added to every fence that goes out, and taken off from one that comes in (fences.h). */
int64_t engine_fence_floor(const struct engine *engine);
/* The lease of a step that names none: its module's stuck_after. */
int64_t engine_lease_ms(struct engine *engine, const struct entity_machine *machine);
/* One sweep of a module now (an external janitor asks for it). done is called in a lane's thread. */
enum hx_code engine_sweep(struct engine *engine, struct slice module,
			  void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held),
			  void *context);
const struct engine_options *engine_options_of(struct engine *engine);
