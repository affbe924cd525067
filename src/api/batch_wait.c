/* See batch_wait.h. */
#include "api/batch_wait.h"

#include "base/id.h"

#define ROW_BYTES_MAX (1u << 20)

const char *batch_detail(enum hx_code code)
{
	if (code == HX_NOT_FOUND)
		return "there is no such batch";
	return code == HX_RUN_EXPIRED ? "the batch has ended long ago, and only its key is kept" : NULL;
}

enum hx_code batch_wait_take(const struct unit_result *result, struct arena *arena, struct batch_row *ret_row)
{
	if (result->rows[0].n == 0)
		return HX_NOT_FOUND;
	batch_row_take(&result->rows[0], 0, /* policy= */ NULL, arena, ret_row);
	if (arena->failed)
		return HX_TOO_LARGE;
	return ret_row->expired ? HX_RUN_EXPIRED : HX_OK;
}

/* ---- the end of the batch ---- */

static enum hx_code batch_wait_show(struct api_wait *wait, const struct unit_result *result)
{
	struct batch_row row;
	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	enum hx_code code = batch_wait_take(result, &arena, &row);

	if (!code) {
		batch_json_add(&row, (enum batch_wrap)wait->wrap, &wait->text);
		wait->over = batch_is_terminal(row.status);
	}
	return code;
}

static void show_created(struct api_wait *wait)
{
	const struct batch_row *created = wait->known;

	batch_json_add(created, (enum batch_wrap)wait->wrap, &wait->text);
}

_Static_assert(BATCH_IS_NEW == API_WAIT_NEW, "a batch that was created is told with 201");

const struct api_wait_kind batch_waits = API_WAIT_END(batch_read, batch_wait_show, batch_has_ended, show_created,
						      batch_detail);

/* ---- the end of its teardown ---- */

static void write_accepted(const void *subject, struct strbuf *text)
{
	char id[ID_TEXT_BYTES];

	id_format("batch", *(const int64_t *)subject, id);
	strbuf_addf(text, "{\"status\":\"ACCEPTED\",\"id\":\"%s\"}", id);
}

void batch_respond_accepted(struct http_call *call, int64_t subject)
{
	api_tell(call, &(struct api_told){202, .write = write_accepted, .of = &subject});
}

/* The request stands, whatever becomes of the waiting. */
static void show_accepted(struct api_wait *wait)
{
	write_accepted(&wait->subject, &wait->text);
	wait->status = 202;
}

/* Nobody holds it: what was in the way has to pass, and then any node goes on. */
static enum hx_code show_torn_down(struct api_wait *wait, const struct unit_result *result)
{
	struct batch_row row;
	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	enum hx_code code = batch_wait_take(result, &arena, &row);

	if (!code && strcmp(row.status, BATCH_CANCELLED) == 0) {
		batch_json_add(&row, BATCH_AS_IS, &wait->text);
		wait->status = 200;
		wait->over = true;
	} else if (!code) {
		show_accepted(wait);
		wait->over = !row.owned || row.past;
	}
	return code;
}

/* Its own topic: also when it is let go. */
static int64_t its_own(int64_t subject)
{
	return subject;
}

void batch_wait_teardown(struct http_call *call, int64_t subject)
{
	static const struct api_wait_kind kind = {
		.read = batch_read,
		.show = show_torn_down,
		.topic = its_own,
		.show_known = show_accepted,
		.detail = batch_detail,
	};

	api_wait_start(&(struct api_wait){
		.kind = &kind, .call = call, .subject = subject, .wait_ms = BATCH_TEARDOWN_WAIT_MS, .known = call});
}
