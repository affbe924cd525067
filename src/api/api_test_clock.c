/*
 * Time that can be skipped, for tests: of `hapax serve --test-clock` alone, whose store is in memory. No part of the API that is
 * described: without that flag there is no such route.
 *
 *   POST /api/v1/test-clock {"skipMs": N}     moves the engine's time ahead by so much, whatever is under way: leases end by it, too
 *   POST /api/v1/test-clock {"toNext": true}  moves it to the next moment at which something ends or begins by itself. Not while a worker
 *                                             or a node has something, or a turn is there to be claimed: then it moves by 0
 *   both answer {"now", "movedMs"}; toNext also "rests": nothing is under way, and nothing comes by time alone
 */
#include <stdlib.h>

#include "api/api.h"
#include "api/api_test_clock.h"
#include "base/json_number.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "engine/engine.h"

#define SKIP_MS_MAX (INT64_C(100) * 366 * 86400000)

/* clang-format off */
/* How much is under way, and when the next thing comes by time alone. */
DB_STMT(stmt_next, "test_clock_next", "", "iii",
	"SELECT hx_now_ms(), (SELECT count(*) FROM hx_subject WHERE until IS NOT NULL)"
	" + (SELECT count(*) FROM hx_function WHERE turn_at <= hx_now_ms() OR due_at <= hx_now_ms())"
	" + (SELECT count(*) FROM hx_run WHERE due_at <= hx_now_ms() AND definition_version > 0)"
	" + (SELECT count(*) FROM hx_run WHERE asked IS NOT NULL AND asked <> 'cancelling'),"
	" (SELECT min(at) FROM (SELECT min(due_at) AS at FROM hx_function UNION ALL SELECT min(turn_at) FROM hx_function"
	" UNION ALL SELECT min(due_at) FROM hx_run WHERE definition_version > 0 UNION ALL SELECT min(due_at) FROM hx_schedule"
	" UNION ALL SELECT min(due_at) FROM hx_job UNION ALL SELECT min(due_at) FROM hx_batch) n)");
/* clang-format on */
enum { NEXT_NOW, NEXT_UNDER_WAY, NEXT_AT };

/* Whoever sleeps until a time looks again. */
static void skip(struct http_call *call, int64_t ms)
{
	test_clock_skip_ms(api_of(call)->test_clock, ms);
	lanes_wake(api_parts(call)->lanes, /* topics= */ NULL, 0);
}

static void tell(struct http_call *call, int64_t moved_ms, const bool *rests, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	json_more_time(text, "now", clock_wall(&api_of(call)->test_clock->clock).ms);
	json_more_int(text, "movedMs", moved_ms);
	if (rests)
		json_more_bool(text, "rests", *rests);
	strbuf_add_char(text, '}');
}

static void build_next(struct api_query *query UNUSED, struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_next, 0, NULL);
}

static enum hx_code answered_next(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];
	int64_t now = db_cell(rows, 0, NEXT_NOW)->i, ms = 0;
	bool idle = db_cell(rows, 0, NEXT_UNDER_WAY)->i == 0;
	bool rests = idle && db_cell(rows, 0, NEXT_AT)->type == DB_NULL;

	if (idle && !rests)
		ms = db_cell(rows, 0, NEXT_AT)->i - now;
	if (ms > 0)
		skip(query->call, ms);
	tell(query->call, ms > 0 ? ms : 0, &rests, &query->text);
	return HX_OK;
}

static void skip_by(struct http_call *call, struct json value)
{
	struct hx_error err;
	struct strbuf text;
	int64_t ms;

	if (json_int64(value, &err, &ms) || ms < 0 || ms > SKIP_MS_MAX) {
		(void)api_invalid(call, "skipMs is a whole number from 0 to %lld", (long long)SKIP_MS_MAX);
		return;
	}
	skip(call, ms);
	strbuf_init(&text, API_TEXT_BYTES_MAX);
	tell(call, ms, /* rests= */ NULL, &text);
	api_answer(call, 200, &text, 0);
}

static void api_test_clock(struct http_call *call)
{
	static const char *const known[] = {"skipMs", "toNext", NULL};
	struct api_query query = {.call = call, .build = build_next, .answered = answered_next};
	struct json body, value;

	if (!api_body(call, known, &body))
		return;
	if (json_find(body, slice_str("skipMs"), &value))
		skip_by(call, value);
	else if (json_find(body, slice_str("toNext"), &value) && slice_is(value.raw, "true"))
		api_query_ask(&query, /* hash= */ 0);
	else
		(void)api_invalid(call, "either skipMs or toNext is needed");
}

const struct route api_test_clock_route = {"POST",      "/api/v1/test-clock",        api_test_clock,
					   ROUTE_ADMIN, "Moves the time of a test.", .id = "moveTestClock"};
