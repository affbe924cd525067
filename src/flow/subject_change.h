/*
 * How a change of status is written, for those who have guards of their own beside those of subject.c: the job's end, say,
 * which its worker must own. Nobody else includes this.
 *
 * What every change of status writes. Parameters 1 to 7 are the same in all of them:
 *   ?1 to   ?2 from   ?3 version or fence   ?4 op   ?5 at   ?6 node   ?7 id
 * The fence is passed in because a claim raises it. hx_link() is db/link.h.
 */
#pragma once

#include "flow/subject.h"

#define CHANGE_BY(transitions, fence) CHANGE_OF("status = ?1, ", transitions, fence)
#define CHANGE_OF(status, transitions, fence)                                                                          \
	"UPDATE hx_subject SET " status "version = version + " transitions                                             \
	", op = ?4, updated_at = ?5, seq = seq + 1,"                                                                   \
	" head = hx_link(head, id, seq + 1, ?2, ?1, version + " transitions ", " fence ", ?4, ?5, ?6)"
#define CHANGE(fence) CHANGE_BY("1", fence)

#define FREED ", owner = NULL, until = NULL"
#define ANSWERED ", effort = effort + 1, doubt = 0" /* the next effect is another one, with a key of its own */

/* A subject that is new, in its first status. */
#define INTO_SUBJECT "INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head)"
#define NEW_SUBJECT(id, kind, status, op, at, node)                                                                    \
	" SELECT " id ", " kind ", " status ", 1, " op ", 0, " at ", 1,"                                               \
	" hx_link(NULL, " id ", 1, '', " status ", 1, 0, " op ", " at ", " node ")"

#define INTO_HISTORY INTO_HISTORY_AND("")
#define INTO_HISTORY_AND(more)                                                                                         \
	"INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash" more ")"
#define INTO_HISTORY_WORKER INTO_HISTORY_AND(", worker") /* of a claim by one */

/* On PostgreSQL new subjects are written with their first rows of history: `new` is NEW_SUBJECT() of each of them. */
/* clang-format off */
#define MAKE_SUBJECTS(new, node, from) \
	"WITH made (id, kind, status, version, op, fence, at, seq, head, node) AS (" new ", " node from ")," \
	" subjects AS (" INTO_SUBJECT " SELECT id, kind, status, version, op, fence, at, seq, head FROM made) " \
	INTO_HISTORY " SELECT id, seq, '', status, version, fence, op, node, at, head FROM made"
/* clang-format on */

/* Both forms of a change of status: the set form writes the history row too, from what the change returns. The columns are
 * version and fence. */
#define CHANGE_FORMS(change, columns)                                                                                  \
	.sql = change " RETURNING {ord}" columns,                                                                      \
	.set_sql = "WITH won AS (" change " RETURNING {ord}" columns                                                   \
		   ", id, seq, ?2 AS was, status, op, ?6 AS node, updated_at, head), told AS (" INTO_HISTORY           \
		   " SELECT id, seq, was, status, version, fence, op, node, updated_at, head FROM won)"                \
		   " SELECT ord, " columns " FROM won",                                                                \
	.carries = &subject_history, .links = &subject_link

/* What subject_add_history() adds; and what it is on SQLite right after a change. */
extern const struct db_stmt subject_history, subject_link;

/*
 * A claim of many at once on SQLite, which has no UPDATE … RETURNING into another statement: its ids stand in hx_ids, and three
 * statements go over them. PostgreSQL does it in the one that picks them.
 *
 * tell    ?1 op   ?2 node   ?3 now   ?4 owner
 * move    ?1 op   ?2 now   ?3 owner   and from ?4 on what the lease is made of (its types: lease_in)
 *
 * `to` is the status and `lease` the ms, both SQL about the subject s.
 */
/* clang-format off */
#define CLAIMED_STMTS(name, to, lease_in, lease)                                                                       \
	DB_STMT(stmt_tell, name "_tell", "itit", "",                                                                   \
		INTO_HISTORY_WORKER " SELECT s.id, s.seq + 1, s.status, " to ", s.version + 1, s.fence + 1, ?1, ?2, ?3,"      \
		" hx_link(s.head, s.id, s.seq + 1, s.status, " to ", s.version + 1, s.fence + 1, ?1, ?3, ?2), ?4"      \
		" FROM hx_ids c CROSS JOIN hx_subject s ON s.id = c.id",                                               \
		.pg_sql = "");                                                                                         \
	DB_STMT(stmt_move, name "_move", "iit" lease_in, "",                                                           \
		"UPDATE hx_subject AS s SET status = " to ", version = version + 1, op = ?1, updated_at = ?2,"         \
		" seq = seq + 1, fence = fence + 1, owner = ?3, until = ?2 + " lease ","                               \
		" head = (SELECT h.hash FROM hx_history h WHERE h.subject = s.id AND h.seq = s.seq + 1)"               \
		" WHERE id IN (SELECT id FROM hx_ids)",                                                                \
		.pg_sql = "");                                                                                         \
	DB_STMT(stmt_forget, name "_forget", "", "", "DELETE FROM hx_ids", .pg_sql = "")
/* clang-format on */
