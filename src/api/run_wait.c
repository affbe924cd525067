/* See run_wait.h. */
#include "api/run_wait.h"

#include "api/run_json.h"
#include "base/json_write.h"

#define ROW_BYTES_MAX (512u << 20)

/* ---- a run as text ---- */

void run_wait_wrap(const struct run_row *row, enum run_wait_wrap wrap, struct strbuf *text)
{
	strbuf_add_str(text, wrap == RUN_BARE ? "" : "{\"run\":");
	run_json_add(row, text);
	if (wrap == RUN_BARE)
		return;
	json_more_bool(text, "created", wrap == RUN_CREATED);
	if (wrap == RUN_WAS_THERE_WITH_OTHER_INPUT)
		json_more_bool(text, "inputDiffers", true);
	strbuf_add_char(text, '}');
}

enum hx_code run_wait_show_started(struct run_start *start, const struct unit_result *result,
				   enum run_wait_wrap *ret_wrap, struct strbuf *text)
{
	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	enum hx_code code = run_start_found(start, result, &arena);

	start->row.entries = &result->rows[RUN_LINE_ENTRIES];
	*ret_wrap = start->differs ? RUN_WAS_THERE_WITH_OTHER_INPUT : RUN_WAS_THERE;
	if (!code)
		run_wait_wrap(&start->row, *ret_wrap, text);
	return code;
}

/* The row's own texts are gone afterwards; its numbers and its status are not. */
enum hx_code run_wait_show(struct http_call *call, const struct unit_result *result, enum run_wait_wrap wrap,
			   struct strbuf *text, struct run_row *ret_row)
{
	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	enum hx_code code = runs_take(api_parts(call)->runs, result, &arena, ret_row);

	ret_row->entries = &result->rows[RUN_LINE_ENTRIES];
	if (!code)
		run_wait_wrap(ret_row, wrap, text);
	return code;
}

/* ---- waiting for it ---- */

static enum hx_code show_waited_run(struct api_wait *wait, const struct unit_result *result)
{
	struct run_row row = {0};
	enum hx_code code = run_wait_show(wait->call, result, (enum run_wait_wrap)wait->wrap, &wait->text, &row);

	wait->version = row.version;
	wait->over = code || run_is_terminal(row.status);
	return code;
}

static void show_created(struct api_wait *wait)
{
	const struct run_row *created = wait->known;

	run_wait_wrap(created, (enum run_wait_wrap)wait->wrap, &wait->text);
	wait->version = created->version;
}

void run_wait_completed(struct run_watch *watch, const struct run_row *row)
{
	struct api_wait *wait = CONTAINER_OF(watch, struct api_wait, watch);

	run_wait_wrap(row, (enum run_wait_wrap)wait->wrap, &wait->text);
	wait->version = row->version;
	wait->over = wait->wait.over = true;
}

_Static_assert(RUN_CREATED == API_WAIT_NEW, "a run that was created is told with 201");

const struct api_wait_kind run_waits = API_WAIT_END(run_read_shown, show_waited_run, run_has_ended, show_created,
						    runs_detail);
