/*
 * A batch and its items as the API shows them.
 *
 *   batch   {"id", "workflow", "definitionVersion", "account", "status", "version", "cancelRequested", "total", "pending",
 *            "running", "succeeded", "failed", "unknown", "accepted", "cancelled", "charged", "refunded", "late", "needs",
 *            "error", "idempotencyKey", "createdAt", "startedAt", "completedAt", "dueAt"}
 *   item    {"n", "status", "decision", "cost", "charged", "attempt", "input", "output", "late", "error"}
 */
#pragma once

#include "flow/batch_verb.h"

enum batch_wrap {
	BATCH_AS_IS,
	BATCH_IS_NEW,    /* with "created": true; API_WAIT_NEW */
	BATCH_WAS_THERE, /* the same with false */
};

void batch_json_add(const struct batch_row *row, enum batch_wrap wrap, struct strbuf *text);
void batch_json_add_item(const struct batch_item_row *item, struct strbuf *text);
