/*
 * A start on SQLite: the lock of the file is ours, so this node is alone, and whoever had claims of the engine's own is dead.
 *
 *   runs, batches, after-effects   their claims are past their time at once: nobody has to wait out the lease of the dead; but for
 *                                  those that hold a slot of a limit, since what they were calling may be under way, and counts
 *   jobs of workers                stay as they are: a worker outlives the node, and goes on under its lease
 *   entities                       stay as they are: what was being called may still be at it, and that is what the lease and
 *                                  the janitor are for
 *
 * The store's clock is this machine's here. If it was set back while nobody served (a day, say), all leases would last for a day
 * longer than anybody meant; that it was, and how far at least, can be seen by the last start and by what is claimed. What is left of
 * a lease then counts from now, and from when the claim was made.
 */
#pragma once

#include "base/log.h"
#include "db/driver.h"

/* Before this node joins. On PostgreSQL nothing happens: there may be others. */
enum hx_code alone_begin(struct db *db, struct log *log, struct hx_error *err) HX_MUST_CHECK;
