/*
 * SQLite's memory, where this program is the only one that uses SQLite in its process (hapax serve, and not the library).
 *
 * Debian's SQLite has no memory of its own for each connection: every cursor, value and page is a malloc, a hundred of them for each
 * run. Most are freed soon by the thread that made them, in a handful of sizes. So each thread has a shelf of what was freed, by size,
 * and a slab from which it cuts what it has none of:
 *
 *   alloc: shelf ─ else depot ─ else cut off the slab ─ else a new slab           free: shelf ─ if that is full, half of it to the depot
 *
 * Slabs are never given back: SQLite keeps its pages anyway. What another thread frees goes round by the depot, so nothing grows
 * without end; a thread that ends leaves its shelf there, and the rest of its slab to nobody. What is larger than a page is malloc's.
 */
#pragma once

#include <stddef.h>

/* Before SQLite is first used, and once. Nor are bytes counted from then on, which would be a lock for each. Not in builds that look at memory. */
void sqlite_memory_own(void);
/* How many bytes all slabs have. */
size_t sqlite_memory_bytes(void);
