/*
 * A run, told to whoever has created it, asked for it, or waits for its end (api_wait.h).
 */
#ifndef HX_API_RUN_WAIT_H
#define HX_API_RUN_WAIT_H

#include "api/api.h"
#include "engine/run_start.h"

enum run_wait_wrap {
	RUN_BARE,                       /* the run itself */
	RUN_CREATED,                    /* {"run": …, "created": true}, 201 */
	RUN_WAS_THERE,                  /* the same with false, 200 */
	RUN_WAS_THERE_WITH_OTHER_INPUT, /* and "inputDiffers": true */
};

/*
 * Answers the call, at the latest after wait_ms. `created`: with RUN_CREATED, what is told when the waiting itself fails: the
 * run was created all the same. Its texts live as long as the exchange. `ahead`: nobody drives it before this returns, so there
 * is nothing to be found out by reading it, and its end cannot be missed.
 */
void run_wait_start(struct http_call *call, int64_t subject, int64_t wait_ms, enum run_wait_wrap wrap,
		    const struct run_row *created, bool ahead);

/* The run that the key of a start has, as text, wrapped in what fits. The codes are those of run_start_found(). */
enum hx_code run_wait_show_started(struct run_start *start, const struct unit_result *result,
				   enum run_wait_wrap *ret_wrap, struct strbuf *text) HX_MUST_CHECK;
/* The run that was read, as text. The codes are those of runs_take(). */
enum hx_code run_wait_show(struct http_call *call, const struct unit_result *result, enum run_wait_wrap wrap,
			   struct strbuf *text, struct run_row *ret_row) HX_MUST_CHECK;
/* The same for a row that is there. */
void run_wait_wrap(const struct run_row *row, enum run_wait_wrap wrap, struct strbuf *text);

#endif
