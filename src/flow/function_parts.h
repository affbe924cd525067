/* What the files of functions share. See function.h. */
#pragma once

#include "flow/function.h"

/* clang-format off */
/* What entry_of_row() reads, of the table e. */
#define ENTRY_COLUMNS(output)                                                                                          \
	"e.i, e.kind, e.name, e.n, e.seq, e.state, e.attempt, e.redo, e.policy, e.detail, " output ", e.error, e.awaits,"  \
	" e.wake_at, e.child, e.started_at, e.completed_at"
#define ENTRY_OUT "ittiitiitttttiiii"
#define ENTRY_PAGED "i, kind, name, n, seq, state, attempt, redo, policy, detail, output, error, awaits, wake_at, child, started_at, completed_at"
#define ENTRY_OUT_N (sizeof ENTRY_OUT - 1)
#define ENTRY_SIZE "length(e.detail) + length(e.name) + coalesce(length(e.output), 0) + coalesce(length(e.error), 0)"
/* Of rows that come as JSON: of json_each() on SQLite, where numbers are what they are, and of PostgreSQL's as t(r). */
#define SQLITE_PICK(n) "json_extract(value, '$[" n "]')"
#define PG_PICK(n) "(r->>" n ")"
#define PG_NUMBER(n) "(r->>" n ")::bigint"
/* clang-format on */

#define FUNCTION_ENTRIES_WORDS "a journal has at most 20000 entries"

/* N:NAME. Appends. */
void entry_write_label(struct slice name, int64_t n, struct strbuf *text);
/* NAME#N into its parts; false: it is none. */
bool entry_split_name(struct slice called, struct slice *ret_name, int64_t *ret_n);
int64_t entry_bytes(const struct function_entry *e);
/* Of the journal, with what the decision has made of it so far. */
int64_t work_bytes(const struct function_work *w);

/* After what was read has come in: it can be found. */
void work_index(struct function_work *w);
/* NULL: there is none at this place, or it was not read. */
struct function_entry *work_at(const struct function_work *w, int64_t place);
/* Those that are open and whose time has come, by their times. Without memory none, and the arena has failed. */
struct function_entry **work_late(const struct function_work *w, size_t *ret_n);
/* Notes those that have ended in this decision, by seq. */
void work_note_ended(struct function_work *w);
/* JSON, texts: the places of those that are so. */
struct slice work_places(struct function_work *w, bool (*is)(const struct function_entry *entry));

/* A policy is two words; and a third one while a try is in doubt that came before the present one. */
#define POLICY_KEYED "keyed"
#define POLICY_IDEMPOTENT "idempotent"
#define POLICY_CLAIMED "claimed"
#define POLICY_RETRY "retry"
#define POLICY_PROBE "probe"
#define POLICY_HOLD "hold"
#define POLICY_DOUBT "doubt"
struct entry_policy {
	struct slice effect, on_unknown;
	bool doubt;
};
struct entry_policy entry_policy(const struct function_entry *entry);
/* The same effect, with this. */
struct slice entry_policy_with(struct function_work *w, const struct function_entry *entry, struct slice on_unknown,
			       bool doubt);

/* One that it is a sibling of has failed: it begins nothing more, and fails when its turn ends. */
bool work_is_to_fail(const struct function_work *w);
/* An entry that is open, or to be tried again, and never is. */
void work_drop_try(struct function_work *w, struct function_entry *e);
/* Compensations that are left to be done. */
int64_t work_to_undo(const struct function_work *w);
/* An error of the run, out of what a worker says: {"code", "message", "step", "cause"}. step may be NULL. */
struct slice function_error(struct function_work *w, struct slice error, const struct function_entry *step);
/* Of the run: {"code", "message", "step": null, "cause"}. */
struct slice function_reason(struct function_work *w, const char *code, const char *message, struct slice cause);
/* {"code", "message"} */
struct slice function_words(struct function_work *w, const char *code, const char *message);
/* The run of a new entry of kind child; one that cannot be is an entry that has failed. */
bool function_bear(struct function_work *w, struct function_entry *e, const struct function_change *c,
		   const struct function_request *rq, struct id_source *ids, struct wall_time now);
void function_prepare_kids(struct function_work *w);
void function_write_kids(struct unit *unit, const struct stamp *stamp, const struct function_work *w);
/* Before its unit: what the run is searched by after it. */
void function_describe(struct function_work *w);
/* Of a read with `failed`. */
int64_t function_follows_n(const struct unit_result *result);
/* Its turn goes on for at least so long: a verdict. Of a heartbeat, and of a call that leaves the status as it is. */
void function_keep(struct unit *unit, const struct function_row *row, int64_t lease_ms);

/* ---- limits: function_limit.c ---- */

bool function_is_limited(const struct limits *limits);
/* begun: it is counted by its rate already. */
struct bounds function_bounds(const struct limits *limits, struct slice workspace, struct slice name,
			      struct slice input, bool begun, struct arena *arena);
/* After the claim of a turn that bounds_take() stands before. */
void function_limit_taken(struct unit *unit, const struct bounds *bounds, int64_t subject);
/* A whole unit: one that nobody has stands in line. LOST: it was moved since. */
void function_limit_wait(struct unit *unit, const struct bounds *bounds, bool too_early, int64_t subject,
			 int64_t version, int64_t at_ms);
/* In the unit of a decision: if it ends the turn, or takes it out of line. */
void function_limit_leave(struct unit *unit, const struct function_work *w);
