/* See key_book.h. */
#include "support/key_book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static struct key_book_entry *slot_of(struct key_book_entry *entries, size_t room, uint64_t key)
{
	size_t i = key % room;

	while (entries[i].key && entries[i].key != key)
		i = (i + 1) % room;
	return &entries[i];
}

static void grow(struct key_book *book)
{
	size_t room = book->room ? 2 * book->room : 256;
	struct key_book_entry *entries = calloc(room, sizeof *entries);

	for (size_t i = 0; i < book->room; i++)
		if (book->entries[i].key)
			*slot_of(entries, room, book->entries[i].key) = book->entries[i];
	free(book->entries);
	book->entries = entries;
	book->room = room;
}

bool key_book_note(struct key_book *book, const char *key, const char *path, const char *body)
{
	uint64_t name = hash_bytes(1, key, strlen(key)) | 1, request = hash_bytes(2, path, strlen(path));
	struct key_book_entry *entry;

	request = hash_bytes(request, body, strlen(body));
	if (2 * book->n >= book->room)
		grow(book);
	entry = slot_of(book->entries, book->room, name);
	if (!entry->key) {
		*entry = (struct key_book_entry){name, request};
		book->n++;
	}
	if (entry->request == request)
		return true;
	if (!book->wrong[0])
		snprintf(book->wrong, sizeof book->wrong, "a second request under the key %.300s: %.100s %.3000s", key,
			 path, body);
	return false;
}

void key_book_release(struct key_book *book)
{
	free(book->entries);
}
