/*
 * What a service that knows keys has done in the outside world. The first call with a key is an effect; every later one
 * changes nothing and is answered with the receipt of the first. It lives in the test's process, so it outlives whoever
 * is killed.
 *
 *	service_play(service, "/charge", &(struct play){.apply = effects_apply, .context = effects});
 *
 * A holder may begin an action once: a second call with the same key under the same fence is what must never be, and is
 * found by effects_wrong(). Calls with the same key under another fence are what follows a lost node, and are counted.
 *
 * All functions may be called from any thread, and none fails the test.
 */
#ifndef HX_TESTS_SUPPORT_EFFECTS_H
#define HX_TESTS_SUPPORT_EFFECTS_H

#include "support/service.h"

struct effects;

struct effects *effects_new(void);
/* Takes NULL. */
void effects_free(struct effects *effects);
/* `apply` of a play, with the effects as its context. */
uint64_t effects_apply(void *effects, const struct service_call *call);

/* How many keys there were, and how many calls came for a key that was done already. */
size_t effects_n(struct effects *effects);
size_t effects_repeated(struct effects *effects);
/* Receipts rise in the order of the first calls, from 1. 0: it was never done. */
uint64_t effects_receipt(struct effects *effects, const char *key);
/* Words on the first call that must never have been; NULL: there is none. */
const char *effects_wrong(struct effects *effects);

#endif
