/* Why a function does not go on: see why.h. */
#include <string.h>

#include "base/clock.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/function.h"
#include "flow/why.h"

#define POLLED_LATELY_MS "120000" /* polls are written down once a minute */

/* The entry that needs somebody, if one does; else the first that has not ended. */
DB_STMT(stmt_function, "why_function", "ti", "itttiitttiii",
	"SELECT f.turn_at, f.name, f.version, f.held, CAST(CASE WHEN EXISTS (SELECT 1 FROM hx_function_poll p"
	" WHERE p.workspace = f.workspace AND p.name = f.name AND (f.version IS NULL OR p.version = f.version)"
	" AND p.at > hx_now_ms() - " POLLED_LATELY_MS ") THEN 1 ELSE 0 END AS bigint), hx_now_ms(), f.worker, e.kind, e.name, e.n, e.wake_at,"
	" e.attempt FROM hx_function f LEFT JOIN hx_entry e ON e.run = f.subject AND e.i = (SELECT x.i FROM hx_entry x"
	" WHERE x.run = f.subject AND x.ended = 0 ORDER BY CASE WHEN x.state = 'unknown' THEN 0 WHEN x.kind = 'approval' THEN 1"
	" WHEN x.state = 'retry' THEN 2 ELSE 3 END, x.i LIMIT 1) WHERE f.workspace = ?1 AND f.subject = ?2");
enum { TURN_AT, NAME, VERSION, HELD, POLLED, NOW, WORKER, ENTRY_KIND, ENTRY_NAME, ENTRY_N, WAKE_AT, ATTEMPT };

void why_read_function(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_function, db_text(workspace), db_int(subject));
}

static void tell(struct why *why, enum why_reason reason, const char *words)
{
	why->reason = reason;
	strbuf_add_str(&why->words, words);
}

static void tell_time(struct why *why, const char *before, int64_t ms)
{
	char text[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){ms}, text);
	strbuf_addf(&why->words, "%s%s", before, text);
}

static void tell_quoted(struct why *why, const struct db_value *cell)
{
	struct slice text = cell->type == DB_TEXT ? cell->s : slice_str("?");

	strbuf_addf(&why->words, "\"%.*s\"", SLICE_ARGS(text));
}

static void tell_entry(struct why *why, const struct db_value *cells)
{
	strbuf_addf(&why->words, "%.*s ", SLICE_ARGS(cells[ENTRY_KIND].s));
	tell_quoted(why, &cells[ENTRY_NAME]);
	if (cells[ENTRY_N].type == DB_INT && cells[ENTRY_N].i)
		strbuf_addf(&why->words, " %lld", (long long)cells[ENTRY_N].i);
}

static void tell_message(struct why *why, struct slice error)
{
	struct json message;

	if (!error.p || !json_find(json_trust(error), slice_str("message"), &message) ||
	    json_type(message) != JSON_STRING)
		return;
	strbuf_add_str(&why->words, ": ");
	strbuf_add_slice(&why->words, slice_of(message.raw.p + 1, message.raw.n - 2));
}

static void tell_turn(struct why *why, const struct db_value *cells)
{
	bool polled = cells[POLLED].i != 0;

	tell(why, polled ? WHY_FUNCTION_WORKER : WHY_FUNCTION_UNPOLLED,
	     polled ? "its turn is due, and waits for a worker that polls for "
		    : "its turn is due, and nobody polls for ");
	if (cells[VERSION].type == DB_TEXT) {
		strbuf_add_str(&why->words, "version ");
		tell_quoted(why, &cells[VERSION]);
		strbuf_add_str(&why->words, " of ");
	}
	tell_quoted(why, &cells[NAME]);
}

static void tell_held(struct why *why, const struct run_row *row, const struct db_value *cells)
{
	if (cells[HELD].type == DB_TEXT) {
		tell(why, strcmp(row->status, RUN_CANCELLING) == 0 ? WHY_RUN_NOT_UNDONE : WHY_FUNCTION_HELD,
		     "is held for a person to retry or cancel it");
		tell_message(why, cells[HELD].s);
	} else {
		tell(why, WHY_RUN_UNKNOWN, "the outcome of the ");
		tell_entry(why, cells);
		strbuf_add_str(&why->words, " is unknown: it waits for a person to resolve it");
	}
}

static void tell_waits(struct why *why, const struct run_row *row, const struct db_value *cells)
{
	bool approval = row->awaits.p && slice_starts(row->awaits, RUN_AWAITS_APPROVAL);

	tell(why,
	     approval                                                   ? WHY_RUN_APPROVAL
	     : row->awaits.p && slice_is(row->awaits, RUN_AWAITS_CHILD) ? WHY_RUN_CHILDREN
	     : row->awaits.p                                            ? WHY_RUN_EVENT
									: WHY_RUN_TIMER,
	     approval ? "waits for a person to decide the " : "waits for the ");
	if (cells[ENTRY_KIND].type == DB_TEXT)
		tell_entry(why, cells);
	else
		strbuf_add_str(&why->words, "next look of a node");
	if (cells[WAKE_AT].type == DB_INT)
		tell_time(why, ", until ", cells[WAKE_AT].i);
}

/* Its starts may go on for a while. */
static void tell_put_off(struct why *why, const struct db_value *cells)
{
	tell(why, WHY_RUN_DEBOUNCE, "waits for its time");
	tell_time(why, ", ", cells[TURN_AT].i);
	strbuf_add_str(&why->words, ": another start before that replaces its input, and puts it off");
}

void why_function(struct why *why, const struct run_row *row, const struct unit_result *lines)
{
	const struct db_value *cells = lines->rows[WHY_LINE_FUNCTION].cells;
	const struct db_rows *slot = &lines->rows[WHY_LINE_SLOT];

	if (strcmp(row->status, RUN_COMPLETED) == 0) {
		tell(why, WHY_RUN_COMPLETED, "waits for nothing: it is completed");
	} else if (strcmp(row->status, RUN_CANCELLED) == 0) {
		tell(why, WHY_RUN_CANCELLED, "waits for nothing: it is cancelled");
	} else if (strcmp(row->status, RUN_FAILED) == 0) {
		tell(why, WHY_RUN_FAILED, "has failed, and waits for a person to retry or cancel it");
		tell_message(why, row->error);
	} else if (row->owned) {
		tell(why, row->past ? WHY_RUN_LAPSED : WHY_RUN_CLAIMED, "its turn is with the worker ");
		tell_quoted(why, &cells[WORKER]);
		tell_time(why, row->past ? ", whose lease was over at " : ", whose lease lasts until ", row->until);
	} else if (row->awaits.p && slice_is(row->awaits, RUN_AWAITS_PERSON)) {
		tell_held(why, row, cells);
	} else if (strcmp(row->status, RUN_PAUSED) == 0) {
		tell(why, WHY_RUN_PAUSED, "waits for a person to resume it");
	} else if (slot->n && row->due_at > row->now) {
		why_slot(why, row, slot);
	} else if (cells[TURN_AT].type == DB_INT && cells[TURN_AT].i > cells[NOW].i) {
		tell_put_off(why, cells);
	} else if (cells[TURN_AT].type == DB_INT) {
		tell_turn(why, cells);
	} else {
		tell_waits(why, row, cells);
	}
}
