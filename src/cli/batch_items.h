/*
 * The items of a batch, out of a file: a JSON array of them, or one to a line.
 *
 *	[{"input": {"frame": 1}, "cost": 5}, {"cost": 7}]         {"input": {"frame": 1}, "cost": 5}
 *	                                                          {"cost": 7}
 *
 * All of it is read and checked before anything is asked of a server, so that a fault in the last line creates no batch.
 */
#pragma once

#include "base/json.h"
#include "base/strbuf.h"

struct batch_items {
	struct strbuf text;
	struct json array; /* in the text; its elements are the items, as they were written */
	int64_t n;         /* at least 1 */
};

/* "-" is standard input. HX_VALIDATION_ERROR says what is wrong, and where: "items.jsonl:3: …". To be released in any case. */
enum hx_code batch_items_read(struct batch_items *items, const char *path, struct hx_error *err) HX_MUST_CHECK;
void batch_items_release(struct batch_items *items);
