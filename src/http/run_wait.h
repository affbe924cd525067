/*
 * Waiting for a run to end, for a client that asked with `wait`: read, sleep until the run ends, look again.
 *
 *   START ─▶ READING ─┬ no such run, expired ────────────────────▶ DONE with the code
 *                     ├ ended, too late, nobody listens any more ▶ DONE, with the run as it is
 *                     └ not yet ─▶ SLEEPING ─┬ woken: it has ended ────────────▶ READING
 *                                            └ RUN_WAIT_LOOK_MS, the deadline ─▶ LOOKING ─┬ not yet ─▶ SLEEPING
 *                                                                                         └ else ────▶ READING
 *   START of a run that was created just now ─▶ SLEEPING
 *
 * The unit that ends the run wakes it, once durable; a wake between the look and the sleep is kept. Other nodes wake only
 * as a hint, hence the look now and then, which is also when it is noticed that the client has gone, or that the server
 * stops. It takes a seat in the run's lane, and no thread.
 */
#ifndef HX_HTTP_RUN_WAIT_H
#define HX_HTTP_RUN_WAIT_H

#include "flow/run.h"
#include "http/api.h"

#define RUN_WAIT_LOOK_MS 1000
#define RUN_WAIT_MS_MAX 300000

enum run_wait_wrap {
	RUN_BARE,     /* the run itself */
	RUN_CREATED,  /* {"run": …, "created": true}, 201 */
	RUN_WAS_THERE /* the same with false, 200 */
};

/* `wait` of the query; 0: there is none. False after answering 400. */
bool run_wait_parse(struct http_call *call, int64_t *ret_ms);
/*
 * Answers the call, at the latest after wait_ms. `created`: with RUN_CREATED, what is told when the waiting itself fails: the
 * run was created all the same. Its texts live as long as the exchange.
 */
void run_wait_start(struct http_call *call, int64_t subject, int64_t wait_ms, enum run_wait_wrap wrap,
		    const struct run_row *created);

/* The run that was read, as text. HX_NOT_FOUND, HX_RUN_EXPIRED, HX_BUSY: this node does not know its definition yet. */
enum hx_code run_wait_show(struct http_call *call, const struct unit_result *result, enum run_wait_wrap wrap,
			   struct strbuf *text, struct run_row *ret_row) HX_MUST_CHECK;
/* The same for a row that is there. */
void run_wait_wrap(const struct run_row *row, enum run_wait_wrap wrap, struct strbuf *text);
/* What a problem with this code says about a run; NULL: the code says it all. */
const char *run_wait_detail(enum hx_code code);

#endif
