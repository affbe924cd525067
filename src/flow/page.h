/*
 * A page of a list whose status is asked for. The status stands in hx_subject, where no index has it: one would be written with each
 * transition, twice. So a page looks at one slice of the rows that it could show, LIST_SLICE of them in the order of an index, and
 * ends where the slice ends, with what it has found. What people look for (jobs that are parked, runs that wait for a person)
 * has an index of its own, and there a slice is of these alone.
 *
 *   line of the page     … WHERE <the index> AND id > ?after AND id <= <the end of the slice> AND status = ? ORDER BY id LIMIT ?
 *   line after it        how many there are in the slice, and where it ends: the cursor, if the page is not full
 */
#pragma once

#define LIST_SLICE 10000
#define LIST_SLICE_SQL "10000"

/* Columns of the line after the page. */
enum { SLICE_N, SLICE_END };

/*
 * Where a page begins and ends, as a range of whole keys of its index: then there is one index that has its order, and no statistics
 * by which another one would look better. `key`: its columns; lead: what those before the last one are; from, to: the last one.
 */
#define PAGE_UP(key, lead, from, to) " WHERE (" key ") > (" lead ", " from ") AND (" key ") <= (" lead ", " to ")"
#define PAGE_DOWN(key, lead, from, to) " WHERE (" key ") < (" lead ", " from ") AND (" key ") >= (" lead ", " to ")"
#define PAGE_TOP "9223372036854775807"
#define PAGE_BOTTOM "-9223372036854775807"

/* Asked of each row of the slice by its key: a join could be begun at the other end, with all that have a rare status. */
#define STATUS_IS(id, status) " AND (SELECT z.status FROM hx_subject z WHERE z.id = " id ") = " status

/* `of`: FROM and WHERE of a page that goes all the way, and its order; end: max or min. */
#define SLICE_OF(id, of) "(SELECT " id " AS id" of " LIMIT " LIST_SLICE_SQL ") AS slice"
#define SLICE_LINE(id, of, end) "SELECT count(*), " end "(slice.id) FROM " SLICE_OF(id, of)
#define SLICE_BOUND(id, of, end) "(SELECT " end "(slice.id) FROM " SLICE_OF(id, of) ")"
