/*
 * Waiting for a batch (api_wait.h): for its end, or, by who has cancelled it and tears it down here, for the end of that.
 */
#pragma once

#include "api/api_wait.h"
#include "api/batch_json.h"

#define BATCH_TEARDOWN_WAIT_MS 30000

/* Tells the batch, in an enum batch_wrap. known: with BATCH_IS_NEW, the struct batch_row that is told when the waiting itself fails. */
extern const struct api_wait_kind batch_waits;
/* Answers 200 with the batch when it is CANCELLED, and 202 when that is left to others, or takes too long. */
void batch_wait_teardown(struct http_call *call, int64_t subject);

/* The row of a batch_read(). HX_NOT_FOUND, HX_RUN_EXPIRED, HX_TOO_LARGE. */
enum hx_code batch_wait_take(const struct unit_result *result, struct arena *arena,
			     struct batch_row *ret_row) HX_MUST_CHECK;
/* 202 {"status":"ACCEPTED","id"}. */
void batch_respond_accepted(struct http_call *call, int64_t subject);
/* What a problem with this code says about a batch; NULL: the code says it all. */
const char *batch_detail(enum hx_code code);
