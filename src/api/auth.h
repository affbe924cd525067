/*
 * Who asks? The answer decides in which workspace a request is, on whose behalf, and whether it may be made at all.
 *
 *   a key (`Authorization: Bearer hx_…` or `X-API-Key: hx_…`)
 *     ├ fits ─┬ its scope covers the route ─▶ workspace and requester are the key's; headers that claim others: 403
 *     │       └ it does not ────────────────▶ 403 FORBIDDEN
 *     └ does not, or two that differ ───────▶ 401 UNAUTHENTICATED
 *   none, but the cookie of a session (engine/session.h), which the dashboard gets for a key: as the key, for our own page alone
 *                                               (serve/local.h), else 403; where the store has never had a key it is nothing
 *   neither
 *     ├ the store has never had a key, and we listen on loopback ─▶ Hapax-Workspace and Hapax-Requester choose, admin's scope;
 *     │                                                             but a browser's request for a page of elsewhere (local.h): 403
 *     └ all else ───────────────────────────────────────────────▶ 401
 *
 * Whatever is wrong about a key is told with the same words. What a key is stands in no answer, log or metric.
 *
 * A request is judged when it comes; one that then waits (for the end of a run, for a job) is not thrown out when its key is
 * revoked meanwhile. Routes that are public ask nobody.
 */
#pragma once

#include "serve/router.h"

/*
 * In the loop's thread. True: call->workspace and call->requester are set. False: it is answered, or go_on(call) is called later,
 * in the loop's thread too, when they are.
 */
bool auth_admit(struct http_call *call, void (*go_on)(struct http_call *call));

#define AUTH_COOKIE "hapax_session"
