/*
 * A page of a list whose status is asked for. The status stands in hx_subject, where no index has it: one would be written with each
 * transition, twice. So a page looks at one slice of the rows that it could show, LIST_SLICE of them in the order of an index, and
 * ends where the slice ends, with what it has found. What people look for (jobs that are parked, runs that wait for a person)
 * has an index of its own, and there a slice is of these alone.
 *
 *   line of the page     … WHERE <the index> AND id > ?after AND <it is of the slice> AND status = ? ORDER BY id LIMIT ?
 *   line after it        how many there are in the slice, and where it ends: the cursor, if the page is not full
 *
 * SQLite is asked for what the index begins with, and for a range of subjects: it goes there and stops there. (Of a comparison of whole
 * keys it would see the first column alone, since `subject` is the rowid, and go through all before a page to come to it.)
 * On PostgreSQL a walk begins with a whole key of its index: then there is one index that has its order, and no statistics by which
 * another one would look better (with `workspace = ?1` in its place the primary key has the same order). It stops only where the
 * first column differs: the end of a workflow, of a value or of a slice it does not see, and would go through all that comes after it,
 * up to the end of the workspace. So there a walk has no end but its LIMIT and its workspace, and what it has read too much, at most
 * a slice of entries of the index, is left out by a query around it.
 */
#pragma once

#define LIST_SLICE 10000
#define LIST_SLICE_SQL "10000"

/* Columns of the line after the page. */
enum { SLICE_N, SLICE_END };

/*
 * a: the name of the table in the query. lead(a): the columns of the index before `subject`, the workspace first, which is ?1; is: what
 * they have to be; base: what else the index is of; order(a): that of the walk.
 */
#define FROM_(a, lead, is, to, from)                                                                                   \
	"{postgres} WHERE (" lead(a) ", " a ".subject) " to " (" is ", " from                                          \
				     "){end}{sqlite} WHERE (" lead(a) ") = (" is ") AND " a ".subject " to " " from    \
								      "{end}"
#define FROM_UP(a, lead, is, from) FROM_(a, lead, is, ">", from)
#define FROM_DOWN(a, lead, is, from) FROM_(a, lead, is, "<", from)
#define END_UP(a, to) " AND " a ".subject <= " to
#define END_DOWN(a, to) " AND " a ".subject >= " to
#define LEAD_ALL(a) a ".workspace"
#define LEAD_WORKFLOW(a) a ".workspace, " a ".workflow"
#define ALL_UP(a) a ".workspace, " a ".subject"
#define ALL_DOWN(a) a ".workspace DESC, " a ".subject DESC"
#define WORKFLOW_UP(a) LEAD_WORKFLOW(a) ", " a ".subject"
#define WORKFLOW_DOWN(a) a ".workspace DESC, " a ".workflow DESC, " a ".subject DESC"

/* At most `most` rows after `from`, with `rest` on PostgreSQL: what is asked of those that are of the walk. */
#define SLICE_(table, a, lead, is, walk, near, base, order, most, rest)                                                \
	"(SELECT " lead(a) ", " a ".subject FROM {postgres}(SELECT " lead(                                             \
		a) ", " a ".subject FROM {end}" table " " a walk "{postgres} AND " a ".workspace " near                \
		   " ?1{end}" base " ORDER BY " order(a) " LIMIT " most "{postgres}) AS " a                            \
							 " WHERE (" lead(a) ") " near " (" is ")" rest "{end})"
#define SLICE_UP(table, a, lead, is, from, base, order, most, rest)                                                    \
	SLICE_(table, a, lead, is, FROM_UP(a, lead, is, from), "<=", base, order, most, rest)
#define SLICE_DOWN(table, a, lead, is, from, base, order, most, rest)                                                  \
	SLICE_(table, a, lead, is, FROM_DOWN(a, lead, is, from), ">=", base, order, most, rest)
/* The slice of a list. */
#define LISTED_UP(table, a, lead, is, base, order, rest)                                                               \
	SLICE_UP(table, a, lead, is, "?2", base, order, LIST_SLICE_SQL, rest)
#define LISTED_DOWN(table, a, lead, is, base, order, rest)                                                             \
	SLICE_DOWN(table, a, lead, is, "?2", base, order, LIST_SLICE_SQL, rest)
#define LISTED_END(listed, end) "(SELECT " end "(slice.subject) FROM " listed " AS slice)"

/*
 * What comes after SELECT … FROM: a page after ?2 of ?3 rows, and one of those in a slice whose status is ?4. On PostgreSQL all of it is
 * decided before the rows are joined: with a LIMIT after the join it would begin at the other end, with everything there is.
 */
#define PAGE_OF(a, found, order)                                                                                       \
	"{postgres} JOIN " found " AS f ON f.subject = " a ".subject ORDER BY " order("f") "{end}"
#define PAGE_UP(table, a, lead, is, base, order)                                                                       \
	PAGE_OF(a, SLICE_UP(table, a, lead, is, "?2", base, order, "?3", ""), order)                                   \
	"{sqlite}" FROM_UP(a, lead, is, "?2") base " ORDER BY " order(a) " LIMIT ?3{end}"
#define PAGE_DOWN(table, a, lead, is, base, order)                                                                     \
	PAGE_OF(a, SLICE_DOWN(table, a, lead, is, "?2", base, order, "?3", ""), order)                                 \
	"{sqlite}" FROM_DOWN(a, lead, is, "?2") base " ORDER BY " order(a) " LIMIT ?3{end}"
#define OF_STATUS(a, order) " AND" STATUS_IS(a ".subject") " ORDER BY " order(a) " LIMIT ?3"
#define STATUS_UP(table, a, lead, is, base, order)                                                                     \
	PAGE_OF(a, LISTED_UP(table, a, lead, is, base, order, OF_STATUS(a, order)), order)                             \
	"{sqlite}" FROM_UP(a, lead, is, "?2")                                                                          \
		END_UP(a, LISTED_END(LISTED_UP(table, a, lead, is, base, order, ""), "max")) base                      \
		OF_STATUS(a, order) "{end}"
#define STATUS_DOWN(table, a, lead, is, base, order)                                                                   \
	PAGE_OF(a, LISTED_DOWN(table, a, lead, is, base, order, OF_STATUS(a, order)), order)                           \
	"{sqlite}" FROM_DOWN(a, lead, is, "?2")                                                                        \
		END_DOWN(a, LISTED_END(LISTED_DOWN(table, a, lead, is, base, order, ""), "min")) base                  \
		OF_STATUS(a, order) "{end}"
/* The line after the page; end: max or min. */
#define SLICE_LINE(slice, end) "SELECT count(*), " end "(slice.subject) FROM " slice " AS slice"

/*
 * How many of each status there are among the first LIST_COUNTED of a walk, and how many it has come to: fewer than LIST_COUNTED are all
 * there are. `slice` as SLICE_DOWN() makes it, of that many.
 */
#define LIST_COUNTED 5000
#define LIST_COUNTED_SQL "5000"
#define SLICE_COUNTS(slice)                                                                                                     \
	"SELECT c.status, c.n, c.looked FROM (SELECT (SELECT z.status FROM hx_subject z WHERE z.id = slice.subject) AS status," \
	" count(*) AS n, CAST(sum(count(*)) OVER () AS bigint) AS looked FROM " slice " AS slice GROUP BY 1) AS c"

/* Asked of each row of the slice by its key: a join could be begun at the other end, with all that have a rare status. */
#define STATUS_IS(id) " (SELECT z.status FROM hx_subject z WHERE z.id = " id ") = ?4"
