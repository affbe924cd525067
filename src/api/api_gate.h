/*
 * The gate in front of our own API: a mutating request that carries an Idempotency-Key runs once, and whoever sends it
 * again gets the same bytes. Without the header nothing changes.
 *
 *   key       by workspace, method and path as sent; 1 to API_GATE_KEY_MAX characters
 *   caller    workspace and requester, whatever API key it comes with: another requester's key is CALLER_MISMATCH
 *   body      as JSON, whatever its Content-Type says: that is how the API reads it
 *   record    in the engine's own store, kept for API_GATE_TTL_MS, a holder trusted for API_GATE_LEASE_MS
 *
 *   a request that is one unit                            every other one
 *     its record is the first line of that unit             ACQUIRING ─┬ ours ────────▶ the handler, in the loop's thread
 *       ├ won ────▶ sent, `created`                                    └ not ours ────▶ replay, 409, 422, 503
 *       ├ lost there ─▶ ACQUIRING, as on the right;         the handler's answer is caught on its way out
 *       │               ours by then: once more               ├ 2xx ────────▶ stored, then sent; the last unit of the work
 *       └ all else ─▶ sent; nothing of the record is left     │               that carried the completion has stored it
 *                                                             ├ definite ───▶ the record is removed, then it is sent
 *                                                             └ not known ──▶ sent; the lease stays
 *
 * So where the work is a unit of ours, a crash leaves the work and its record, or neither.
 */
#pragma once

#include "db/unit.h"
#include "serve/router.h"

#define API_GATE_KEY_MAX 255
#define API_GATE_TTL_MS (INT64_C(24) * 60 * 60 * 1000)
#define API_GATE_LEASE_MS 60000

struct api_gate;
struct api_told;

/* In the loop's thread, before the handler. False: the gate has the request, and calls the handler if it comes to that. */
bool api_gate_admit(struct http_call *call);

/* ---- for handlers whose unit carries the record; call->gate is not NULL. The texts of the answer are copied ---- */

/*
 * For a request that is one unit, as its first line: the answer that will be given if it is won. An answer that there was
 * no memory for (failed) is kept without its body.
 */
void api_gate_open_unit(struct api_gate *gate, const struct http_answer *answer, bool failed, struct unit *unit);
/* Was it the record that such a unit lost by? Then the exchange is the gate's: it answers, or calls again(data) in a
 * lane's thread, with the record acquired. */
bool api_gate_lost(const struct unit_result *result);
void api_gate_find_out(struct api_gate *gate, void (*again)(void *data), void *data);

/* Such a unit was lost to something else than the record, and the answer is yet to be found: again(data), with the record
 * acquired, and from there on as for every other request. */
void api_gate_acquire(struct api_gate *gate, void (*again)(void *data), void *data);
/* The unit was won, and what is answered says more than what it has kept (the run has gone on): the first one is told
 * that, who sends it again what was kept. */
void api_gate_tell_more(struct api_gate *gate);

/* For work of several units: until when one may be begun. After that somebody else may be let in under the key. */
struct mono_time api_gate_work_until(const struct api_gate *gate);
/* In the one that brings it to its end, after all other lines: the answer as api_tell() would give it. */
void api_gate_carry(struct api_gate *gate, const struct api_told *told, struct unit *unit);
/* That unit is durable. */
void api_gate_carried(struct api_gate *gate, const struct unit_result *result);
/* It was lost after all, and there was nothing left to do: the answer is kept as that of every other request. */
void api_gate_not_carried(struct api_gate *gate);
