/*
 * How many jobs, batches or entities are in which status, as far as LIST_COUNTED of them tell (page.h): the newest, and of what people
 * look for (jobs that are parked, or tried again) those of its own index.
 *
 * Runs are counted exactly, by a line beside each of their transitions (run_count.h). A job is pushed, claimed and ended in statements
 * that do it for hundreds at once: a line for each of these would show in every measure of queues. A look at the newest takes 2 to 7 ms,
 * and only where somebody has the list open.
 */
#pragma once

#include "db/unit.h"

enum counted { COUNTED_JOBS, COUNTED_BATCHES, COUNTED_ENTITIES };

/* name: of the queue, or the workflow; empty: any, but of entities. Rows: status, how many, how many were looked at for it. */
void status_count(struct unit *unit, enum counted noun, struct slice workspace, struct slice name);
