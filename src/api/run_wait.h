/*
 * A run, told to whoever has created it, asked for it, or waits for its end (api_wait.h).
 */
#pragma once

#include "api/api_wait.h"
#include "engine/run_start.h"

enum run_wait_wrap {
	RUN_BARE,                       /* the run itself */
	RUN_CREATED,                    /* {"run": …, "created": true}, 201: API_WAIT_NEW */
	RUN_WAS_THERE,                  /* the same with false, 200 */
	RUN_WAS_THERE_WITH_OTHER_INPUT, /* and "inputDiffers": true */
};

/*
 * Tells the run, in an enum run_wait_wrap. known: with RUN_CREATED, the struct run_row that is told when the waiting itself fails:
 * the run was created all the same. begun: nobody drives it before api_wait_start() returns, so its end cannot be missed.
 */
extern const struct api_wait_kind run_waits;
/* Of struct run_watch in one of them. */
void run_wait_completed(struct run_watch *watch, const struct run_row *row);

/* The run that the key of a start has, as text, wrapped in what fits. The codes are those of run_start_found(). */
enum hx_code run_wait_show_started(struct run_start *start, const struct unit_result *result,
				   enum run_wait_wrap *ret_wrap, struct strbuf *text) HX_MUST_CHECK;
/* The run that was read, as text. The codes are those of runs_take(). */
enum hx_code run_wait_show(struct http_call *call, const struct unit_result *result, enum run_wait_wrap wrap,
			   struct strbuf *text, struct run_row *ret_row) HX_MUST_CHECK;
/* The same for a row that is there. */
void run_wait_wrap(const struct run_row *row, enum run_wait_wrap wrap, struct strbuf *text);
