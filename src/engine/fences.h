/*
 * The floor of all fences: what makes a restored store give out higher ones than the store that was lost.
 *
 *   fence that a service or a worker sees  =  floor  +  fence of the subject's row, which counts its holders from 1
 *
 * Rows, guards, histories and the audit know nothing of the floor: it is added where a fence goes out (the action port, the jobs
 * API) and taken off where one comes in. So one row raises the fences of all subjects at once, also of those that are yet to
 * come under a name that the lost store had given out too.
 *
 * The floor is the time at which it was raised: seconds since 1970, and six zeros. So a backup that is restored twice has another
 * one each time, without anybody remembering the first. It stays right as long as a subject had fewer than a million holders in
 * each second that was lost, and as the clock does not lag that of the last raise. Below 2^53, so that workers may take
 * it for a JavaScript number.
 *
 *  F1  Raised only while no server uses the store: one that runs has read the floor at its start. One that was out of sight
 *      for longer than its node's lease may come back: it hears of the floor with the next renewal (nodes.h).
 *  F2  It never falls.
 */
#pragma once

#include "db/driver.h"

/* The units. Row: floor, also of the raise. REFUSED: there are nodes; LOST: the clock lags. */
void fences_ask_floor(struct unit *unit);
void fences_ask_raise(struct unit *unit);

/* For a server that starts, after nodes_join(): whoever raises meanwhile sees the node, or is waited for. */
enum hx_code fences_read_floor(struct db *db, int64_t *ret_floor, struct hx_error *err) HX_MUST_CHECK;

/*
 * On a store of this program's schema. HX_BUSY: a server uses it. HX_CONFIG_ERROR: the clock lags an earlier raise. A
 * second time within a second changes nothing.
 */
enum hx_code fences_raise(const char *url, int64_t *ret_floor, struct hx_error *err) HX_MUST_CHECK;
