/*
 * SQLite's own page cache, kept from walking over all of its pages at each commit.
 *
 * After a commit SQLite has the cache drop what is beyond the end of the file. The cache knows the highest number that it was ever asked
 * for, and is done at once if that is not beyond. But a split of a b-tree swaps two pages by way of a number that no page has (that of the
 * lock, 1 GiB into the file), and few commits are without a split: so each went over every chain of the table, 65,536 where the
 * cache is full, which was 8 % of what a lane does and grew with the store. Here whoever moves away again is forgotten.
 */
#pragma once

/* Before SQLite is first used, and once; see sqlite_memory_own(), which does this, too. */
void sqlite_pages_own(void);
