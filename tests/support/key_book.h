/*
 * What a service that compares requests by their key remembers of each: one address and one body to an Idempotency-Key, over all
 * its paths, for ever. The services of all tests keep one, so that whatever the engine is put through there, it is tried
 * whether a key was ever used for two requests.
 */
#ifndef HX_TESTS_SUPPORT_KEY_BOOK_H
#define HX_TESTS_SUPPORT_KEY_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key_book {
	size_t n, room;
	struct key_book_entry {
		uint64_t key, request; /* hashed; key 0: free */
	} * entries;
	char wrong[4000]; /* the first two requests that had one key; empty: none */
};

/* False: another request had this key. Not thread-safe. */
bool key_book_note(struct key_book *book, const char *key, const char *path, const char *body);
void key_book_release(struct key_book *book);

#endif
