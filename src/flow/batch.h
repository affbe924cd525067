/*
 * The batch: many costly items, each of which burns credit and makes an expensive call; the user may cancel at any moment.
 *
 *   create ─▶ LOADING ─▶ PENDING ─ start ─▶ QUEUED        OUT_OF_CREDIT ◀─┐ too little for the next item; money that
 *                │ ▲       │  └─────┬──────────┘                │        │ suffices makes it due
 *                │ └─ add ─┘        │ seize (version, unowned or past its time, no cancel requested)
 *                │ loader lost      ▼                           │        │
 *                ▼               RUNNING ◀──────────────────────┘        │
 *             FAILED              │  ▲ └──────────────────────────────────┘
 *                                 │  let go while items rest, or the holder is lost: due, or past its time; anyone seizes it
 *                                 │  cancel: the flag only; its holder sees it at the next item, whoever seizes it at once
 *          no item left, no flag  │  the flag is set
 *                ┌────────────────┴──────────┐         cancel of a PENDING or QUEUED one: seized straight into this
 *                ▼                           ▼◀──────────────────────────────────
 *            COMPLETED                  CANCELLING ─ slice by slice: void, then flip and refund ─▶ clean up ─┬ gone ─▶ CANCELLED
 *                                            ▲                                                             └ one failed:
 *                                            └─────────────────────────────────── let go, due after a backoff ────┘
 *
 *   item   PENDING ─ start: charged = cost, debited ─▶ RUNNING ─┬ done ─────────────────▶ SUCCEEDED
 *             ▲                                                 ├ unknown: in doubt; again without a debit, probe, or UNKNOWN
 *             └──────── returned, attempts left ────────────────┴ failed, not in doubt: returned ─▶ FAILED
 *   decision of an item: none ─▶ accepted (SUCCEEDED, by a caller) or cancelled (by teardown, whatever its status)
 *
 * A node holds a batch for a tenure: one fence. In it a lead decides (batch_lead.h), hands do the items (batch_hand.h) and
 * later delete what cancelled ones have left (batch_clean.h); whose turn it is says batch_tenure.h.
 *
 * Every unit about a batch touches its subject and its account's: PostgreSQL has locked both before the first line, so
 * starting an item and requesting the cancel never act on each other's past, and what a line reads of the batch, its items and
 * its account still holds when the next one writes.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  B1  Money: balance = opening + credits − charges + returns + refunds, entry by entry. batch.charged = Σ item.charged,
 *      batch.refunded = Σ item.charged of the cancelled ones.
 *  B2  Start and debit are one unit, failure and return are one unit, flip and refund are one unit: the marker is never seen
 *      without the money, nor the money without the marker. An item is refunded at most once, and what it was charged then.
 *  B3  An item that has ended is never begun again, and its call carries one key, ever: batch_ID/N.
 *  B4  No item is begun once cancel is requested, nor by a holder whose fence is not the batch's.
 *  B5  CANCELLED only when every item is decided and, after that, a whole pass over all cancelled items that were ever begun
 *      has found their artifacts gone, under one fence. COMPLETED only without a cancel request, and with no item PENDING or
 *      RUNNING: never both completed and refunded.
 *  B6  Nothing leads out of CANCELLING but CANCELLED.
 *  B7  A batch that is not terminal and not PENDING is owned, or due at some time, or OUT_OF_CREDIT with `needs` above the
 *      balance of its account: nothing gets stuck.
 *  B8  Items with n >= total do not exist for anybody but their loader.
 */
#pragma once

#include "db/columns.h"
#include "flow/account.h"
#include "flow/ways.h"
#include "model/batch_definition.h"

#define BATCH_LOADING "LOADING"
#define BATCH_PENDING "PENDING"
#define BATCH_QUEUED "QUEUED"
#define BATCH_RUNNING "RUNNING"
#define BATCH_OUT_OF_CREDIT "OUT_OF_CREDIT"
#define BATCH_CANCELLING "CANCELLING"
#define BATCH_COMPLETED "COMPLETED"
#define BATCH_CANCELLED "CANCELLED"
#define BATCH_FAILED "FAILED"

#define BATCH_ITEMS_MAX 1000000
#define BATCH_SLICE 500 /* items in one unit, when they are loaded or flipped */
#define BATCH_INPUT_BYTES_MAX (1u << 20)
#define BATCH_OUTPUT_BYTES_MAX (1u << 20)
#define BATCH_LOSSES_MAX 10 /* holders lost over one item before a person has to look */
#define BATCH_REST_MS 1000  /* between two looks at a batch that nobody could work on */

/* Whoever looks for due batches sleeps on this topic. */
#define BATCH_TOPIC (INT64_MAX - 2)

int64_t batch_kind(void);

/* A definition in the version that the store knows. Lives as long as the program. */
struct batch_machine {
	const struct batch_definition *definition;
	int64_t version;
};
/* NULL: this node does not know it (yet). Pure. */
typedef const struct batch_machine *(*batch_machine_fn)(const void *context, struct slice workflow, int64_t version);

struct batch_policy {
	int64_t lease_ms; /* for definitions without one */
	batch_machine_fn machine_of;
	const void *context;
	/* engine/fences.h: in keys that have a fence, so that a restored store makes others. NULL: none */
	int64_t (*fence_floor)(const void *context);
};

/* What a node has while it holds a batch. Flat; texts live as long as the tenure: batch_hold_keep(). */
struct batch_hold {
	int64_t subject, account, fence, lease_ms;
	int64_t fence_floor;    /* the policy's, when it was taken */
	struct mono_time since; /* the lease is trusted from here on */
	const struct batch_machine *machine;
	struct slice workspace, requester, trace, data; /* data .p NULL: none */
	struct slice ledger_prefix;                     /* of the keys of its entries: "/batch_ID/" */
};

static inline struct lease batch_lease(const struct batch_hold *hold)
{
	return (struct lease){hold->subject, hold->fence, hold->lease_ms, hold->since};
}

/* A call for an item of it, or for the whole. */
static inline struct act_call batch_call(const struct batch_hold *hold, const struct action *action, struct slice input,
					 struct slice key, int64_t attempt)
{
	return (struct act_call){
		.action = action,
		.input = input,
		.key = key,
		.attempt = attempt,
		.traceparent = hold->trace,
		.tenant = unit_tenant(hold->workspace),
		.lease = batch_lease(hold),
	};
}

/* ---- reading ---- */

/* What is counted as its items go on: columns, and members of what is told about it. N(X, end of the column's name, member) */
/* clang-format off */
#define BATCH_COUNTS(N, X)                                                                                             \
	N(X, SUCCEEDED, succeeded) N(X, FAILED_N, failed) N(X, UNKNOWN, unknown) N(X, ACCEPTED, accepted)              \
	N(X, CANCELLED_N, cancelled) N(X, CHARGED, charged) N(X, REFUNDED, refunded) N(X, LATE, late)
/* clang-format on */
#define BATCH_COUNT(X, column, member) X(BATCH_##column, INT, member, "b." #member)

/* Columns of batch_read, batch_read_key and batch_list: see columns.h. */
#define BATCH_FIELDS(X)                                                                                                \
	STARTED_FIELDS(X, BATCH, "b.", "batch_key")                                                                    \
	BATCH_COUNTS(BATCH_COUNT, X)                                                                                   \
	X(BATCH_WORKFLOW, TEXT, workflow, "b.workflow")                                                                \
	X(BATCH_DEFINITION_VERSION, INT, definition_version, "b.definition_version")                                   \
	X(BATCH_ACCOUNT, INT, account, "b.account")                                                                    \
	X(BATCH_ACCOUNT_NAME, TEXT, account_name, "a.name")                                                            \
	X(BATCH_BALANCE, INT, balance, "a.balance")                                                                    \
	X(BATCH_CANCEL_REQUESTED, FLAG, cancel_requested, "b.cancel_requested")                                        \
	X(BATCH_NEEDS, INDEX, needs, "b.needs")                                                                        \
	X(BATCH_TOTAL, INT, total, "b.total")                                                                          \
	X(BATCH_NEXT_N, INT, next_n, "b.next_n")                                                                       \
	X(BATCH_FLIPPED_TO, INT, flipped_to, "b.flipped_to")                                                           \
	X(BATCH_CLEANUPS, INT, cleanups, "b.cleanups")                                                                 \
	X(BATCH_DATA, TEXT, data, "b.data")                                                                            \
	X(BATCH_LOADED_AT, THERE, loaded, "b.loaded_at")                                                               \
	X(BATCH_RUNNING_N, INT, running, OPEN_ITEMS("count(*)", "RUNNING"))    /* and undecided */                     \
	X(BATCH_RETRY_AT, INT, retry_at, OPEN_ITEMS("min(due_at)", "PENDING")) /* the earliest of those that rest */
enum { BATCH_FIELDS(COLUMN_NAME) BATCH_NOW /* the store's clock when it was read */, BATCH_COLUMNS };
/* One line. An empty workspace: any. */
void batch_read(struct unit *unit, struct slice workspace, int64_t subject);
void batch_read_key(struct unit *unit, struct slice workspace, struct slice key);

struct batch_filter {
	struct slice workspace;
	struct slice status, workflow; /* empty: any */
	int64_t before;                /* newest first; INT64_MAX: from the newest on */
	int64_t limit;
};
void batch_list(struct unit *unit, const struct batch_filter *filter);
/* The same rows of these ids, JSON [1, …], in whatever order. */
void batch_list_these(struct unit *unit, struct slice workspace, struct slice ids);

extern const struct due_source batch_due_source; /* flow/due_watch.h */

/* What batch_read() found, copied into an arena. */
struct batch_row {
	int64_t subject, account, version, fence;
	const char *status; /* one of the constants above */
	bool owned, past, cancel_requested, loaded, expired;
	const struct batch_machine *machine; /* NULL: not known here (yet) */
	int64_t definition_version, balance;
	int64_t needs; /* -1: nothing */
	int64_t total, next_n, succeeded, failed, unknown, accepted, cancelled, charged, refunded, late;
	int64_t flipped_to, cleanups, running;
	int64_t retry_at, due_at, until, created_at, started_at, completed_at; /* 0: none */
	int64_t now;
	struct slice workspace, workflow, requester, trace, key, account_name, owner, error; /* .p NULL: none */
	struct slice data, attributes; /* what it is about, and what it is searched by, as it is kept; likewise */
};
/* Of one row of the columns above. policy NULL: without its machine. A full arena is told by the arena. */
void batch_row_take(const struct db_rows *rows, size_t i, const struct batch_policy *policy, struct arena *arena,
		    struct batch_row *ret_row);
/* What the row says of a hold, for whoever seizes it, or writes about it without holding it. Texts in the arena. */
void batch_hold_of(const struct batch_row *row, const struct batch_policy *policy, struct arena *arena,
		   struct batch_hold *ret_hold);
/* Its texts, all that its shape names, are copies in the arena from now on. */
void batch_hold_keep(struct batch_hold *hold, struct arena *arena);
static inline bool batch_is_terminal(const char *status)
{
	return ways_is_terminal(&batch_ways, slice_str(status));
}
static inline bool batch_has_ended(struct slice status)
{
	return ways_have_ended(&batch_ways, status);
}
extern const char *const batch_statuses[]; /* all there are; ends with NULL */
/* The constant that has this text; NULL: none. */
static inline const char *batch_status_of(struct slice text)
{
	return ways_status(&batch_ways, text);
}
/* Items that were never begun, or rest: what is left of `total`. */
int64_t batch_pending(const struct batch_row *row);

/* ---- units of whole batches ---- */

struct batch_spec {
	int64_t subject, account;
	struct slice workspace, requester, trace; /* trace empty: none */
	struct slice key;                         /* .p NULL: none */
	struct slice data;                        /* JSON; .p NULL: none */
	struct slice attributes;                  /* batch_describe() */
	const struct batch_machine *machine;
};
/* What it is searched by, with this data: as it is kept, in the arena. .p NULL: nothing. Pure. */
struct slice batch_describe(const struct batch_machine *machine, struct slice data, struct arena *arena);
/*
 * A new one in LOADING, held by the writer for lease_ms, without items. LOST: the key has a batch, which batch_read_key()
 * finds.
 */
void batch_create(struct unit *unit, const struct stamp *stamp, const struct batch_spec *spec, int64_t lease_ms);
/*
 * A new one with all its items, QUEUED or PENDING, in one unit: `rows` as in batch_load_slice(), of `total` items. LOST: as
 * batch_create().
 */
void batch_create_whole(struct unit *unit, const struct stamp *stamp, const struct batch_spec *spec, struct slice rows,
			int64_t total, bool queued);
/*
 * Items n = from, from + 1, … of a batch that the writer is loading: `rows` is JSON, [[cost, "input as JSON in a string"], …].
 * What a lost loader has left there is replaced. LOST: the batch is not the writer's any more.
 */
void batch_load_slice(struct unit *unit, const struct batch_hold *hold, int64_t from, struct slice rows);
/* All of them are there: the batch has `total` items and is let go, PENDING (to be started) or QUEUED. */
void batch_load_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t total,
		    bool queued);
/* A PENDING one is LOADING once more, held by the writer. LOST: another version, or another status. Row: version, fence. */
void batch_load_more(struct unit *unit, const struct stamp *stamp, const struct batch_row *row, int64_t lease_ms);
/* Its loader is lost: FAILED, and the key is free, or PENDING as before. LOST: it is not past its time, or not LOADING. */
void batch_load_lost(struct unit *unit, const struct stamp *stamp, const struct batch_row *row);

/* PENDING ─▶ QUEUED, due at once. LOST: another version, or another status. */
void batch_start(struct unit *unit, const struct stamp *stamp, const struct batch_row *row);

/*
 * A node takes it, to work on it (RUNNING) or to tear it down (CANCELLING, also sets the flag). LOST: another version, or
 * somebody holds it, or (for RUNNING) its cancel is requested. Row: version, fence. Without a lease (CANCELLING) it is due, for
 * whoever finds it.
 */
void batch_seize(struct unit *unit, const struct stamp *stamp, const struct batch_row *row, const char *to,
		 int64_t lease_ms);
/* The holder found the flag: RUNNING ─▶ CANCELLING, still held. Row: version, fence. */
void batch_begin_teardown(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold);
/*
 * The holder lets go, in the status that it has. rest_ms: due then; 0: when the first resting item is. At once when the cancel
 * of a RUNNING one is requested. failed_cleanup: counts towards the backoff; error: why, or .p NULL.
 */
void batch_let_go(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const char *status,
		  int64_t rest_ms, bool failed_cleanup, struct slice error);
/* RUNNING ─▶ OUT_OF_CREDIT, let go. LOST: not ours, the cancel is requested, or the balance suffices for the next item. */
void batch_stop_short(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold);
/*
 * RUNNING ─▶ COMPLETED, or CANCELLING ─▶ CANCELLED. LOST: not ours; something is left to do; the cancel is requested
 * (COMPLETED); a late success came since (CANCELLED); or the totals are not those of `row` any more, which the after-effects
 * tell. Jobs get `job_ids`.
 */
void batch_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const char *to,
	       const struct batch_row *row, const int64_t job_ids[], const struct slice job_keys[],
	       struct slice payload);

/* Something that goes into the very unit that gets it done (the record of an Idempotency-Key, the result of a bulk's item). */
struct batch_along {
	/* Adds lines, after all others; may be called again for the same unit. Where they decide, whoever sees the answers does too. */
	void (*add)(struct batch_along *along, struct unit *unit);
	void (*won)(struct batch_along *along, const struct unit_result *result);
};

/* The flag, of a batch that is RUNNING or OUT_OF_CREDIT; due at once if nobody holds it. LOST: it is set, or another status. */
void batch_request_cancel(struct unit *unit, const struct stamp *stamp, const struct batch_row *row);

/* After a line that has raised a balance: batches that wait for no more than that are due. */
void batch_wake_waiting(struct unit *unit, int64_t account);

/* ---- texts, into the arena ---- */

/* batch_ID/N, the key of an item; with a suffix batch_ID/N/SUFFIX/NUMBER. */
struct slice batch_item_key(int64_t subject, int64_t n, const char *suffix, int64_t number, struct arena *arena);
/* batch_ID/done/ACTION: the key of an after-effect of its end. */
struct slice batch_done_key(int64_t subject, const char *action, struct arena *arena);
/* What a call about an item is told. step: "item", "probe", "void", "cleanup". */
struct batch_call_item {
	int64_t n;
	int64_t attempt;            /* of the item, for the header: no body tells it, or a key would have several */
	struct slice input, output; /* .p NULL: none */
	struct slice about;         /* the key that a void makes useless, a probe asks about; .p NULL: it is neither */
};
struct slice batch_call_body(const struct batch_hold *hold, const char *step, const struct batch_call_item *item,
			     struct arena *arena);
/* The final totals, as the payload of after-effects. `version` is the one that the end reaches. */
struct slice batch_totals(const struct batch_hold *hold, const struct batch_row *row, const char *to, int64_t version,
			  struct arena *arena);
