/*
 * A bell: what wakes a thread that sleeps at a descriptor (an eventfd).
 *
 * Who wakes many holds its rings until it has told all of them what there is. Otherwise the first to be woken runs at once, in
 * the place of the one who wakes, finds a single thing to do and sleeps again; the next one wakes it anew:
 *
 *   bells_hold() · bell_ring(a) · bell_ring(a) · bell_ring(b) · bells_let_go(): a and b ring, once each
 *
 * Each thread holds its own. A bell that is held stays until it has been rung, whoever frees it meanwhile.
 */
#pragma once

#include <stdbool.h>

struct bell;

/* NULL without memory or descriptors. */
struct bell *bell_new(void);
/* One more who has to free it. */
struct bell *bell_share(struct bell *bell);
/* Takes NULL. */
void bell_free(struct bell *bell);
/* Readable when it was rung. */
int bell_fd(const struct bell *bell);
/* From any thread. */
void bell_ring(struct bell *bell);
/* It has been heard: not readable any more. */
void bell_still(struct bell *bell);

/* From here on to bells_let_go() this thread's rings wait. Not nested, and nothing in between waits for who would be woken. */
void bells_hold(void);
void bells_let_go(void);
