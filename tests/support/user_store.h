/*
 * A store of a user's own, struct hx_gate_store as its author would write it: an array and a mutex. It runs through the
 * contract suite like all others; and, being too simple to be wrong, it is what others are compared with.
 */
#ifndef HX_TESTS_SUPPORT_USER_STORE_H
#define HX_TESTS_SUPPORT_USER_STORE_H

#include <stdbool.h>

#include "base/clock.h"
#include "hapax.h"

#define USER_STORE_RECORDS_MAX 2048

struct user_store;

/* NULL without memory. Its time is the clock's. */
struct user_store *user_store_new(struct clock *clock);
/* Takes NULL. */
void user_store_free(struct user_store *store);
/* Lives as long as the store. */
const struct hx_gate_store *user_store_table(const struct user_store *store);

/* From now on all functions say HX_STORE_UNAVAILABLE, and do nothing. */
void user_store_set_down(struct user_store *store, bool down);
/* Removes a record that must be there: what its author does by himself, since the table has nothing for people. */
void user_store_forget(struct user_store *store, const unsigned char *key);

#endif
