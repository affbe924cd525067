/*
 * A run as the API shows it.
 *
 *   {"id", "status", "version", "definitionId", "definitionVersion", "currentStep", "input", "state", "output", "error",
 *    "idempotencyKey", "createdAt", "startedAt", "completedAt", "updatedAt", "steps": […]}
 *
 * The steps are those of its definition, in order. Only what is done has a row; all else follows from where the run stands:
 *
 *   before that place, a row       its own COMPLETED or SKIPPED
 *   before that place, no row      SKIPPED: a condition jumped over it
 *   at that place                  run_json_step_status()
 *   after it                      PENDING
 */
#pragma once

#include "base/strbuf.h"
#include "flow/run.h"

/* Needs row->machine. */
void run_json_add(const struct run_row *row, struct strbuf *text);
/* A row of run_list(), without state and steps. machine NULL: this node does not know its definition. */
void run_json_add_listed(const struct db_rows *rows, size_t i, const struct run_machine *machine, struct strbuf *text);

/* The status of the step at which it stands. It is not at its end. */
const char *run_json_step_status(const struct run_row *row);
