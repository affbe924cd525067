/*
 * The subject: a row with a status, a version and, while somebody works on it, a claim. This file has all the
 * statements that change one; everything else in the engine goes through these builders.
 *
 *                    subject_transition  (status, version)
 *              ┌──────────────────────────────────────────────────┐
 *              │                                                  ▼
 *   create ──▶ A ── subject_claim (status, version) ──▶ CLAIMED ── subject_finish (fence) ──▶ B
 *              ▲    owner, fence+1, until               │  ▲ │
 *              │                                        │  └─┘ subject_heartbeat (fence): until only
 *              ├──── subject_release (fence) ───────────┤
 *              └──── subject_revert  (fence, until past)┘
 *
 *   subject_take_over (fence, until past): CLAIMED stays, owner, fence+1, until · subject_hold (fence): until never
 *
 * Subjects that somebody drives through several statuses under one claim (runs) have three moves of their own:
 *
 *   subject_seize (status, version, unowned or until past): fence+1, owner · subject_advance (fence, status): owner stays,
 *   or lets go · subject_shift (status, version): by others, the claim stays as it is
 *
 * Invariants (the simulator checks each of them on every edge):
 *  S1  Every change of status is one guarded write; its row count is the verdict. It raises the version by 1,
 *      carries the op of its unit and writes one history row in the same unit.
 *  S2  The fence rises with each claim and never falls, so no two holders ever have the same one.
 *  S3  Finish, release, revert and heartbeat are guarded by the fence: from a stale holder they change nothing.
 *  S4  owner and until are set exactly while the subject is claimed.
 *  S5  The effort rises when an action gave a definite answer (done, or refused for good) and never otherwise: it is
 *      where the numbers of new keys come from. A claim that ended by its time leaves a doubt. What an entity's step
 *      in doubt has of both it keeps for itself, whatever is answered meanwhile (kept_call.h).
 *  S6  history.seq has no gaps, and head is the hash that links its last row to the one before (db/link.h), so the last
 *      head vouches for all rows.
 */
#pragma once

#include "base/clock.h"
#include "db/link.h"
#include "db/unit.h"

/* Whoever waits for its end sleeps on this topic, which the unit that ends it wakes: once, not with every change. */
static inline int64_t subject_end_topic(int64_t subject)
{
	return -subject;
}

/* A column where s is hx_subject; 1: owned, and its time is over, by the store's clock. */
#define SUBJECT_IS_PAST "CAST(CASE WHEN s.owner IS NOT NULL AND s.until <= hx_now_ms() THEN 1 ELSE 0 END AS bigint)"

/* The columns that every noun has of its subject (db/columns.h), after its id: in front of its own, by the prefix of their names. */
#define SUBJECT_FIELDS(X, P)                                                                                           \
	X(P##_STATUS, OTHER_TEXT, _, "s.status")                                                                       \
	X(P##_VERSION, INT, version, "s.version")                                                                      \
	X(P##_FENCE, INT, fence, "s.fence")                                                                            \
	X(P##_OWNER, TEXT, owner, "s.owner")                                                                           \
	X(P##_UNTIL, INT, until, "s.until")                                                                            \
	X(P##_PAST, FLAG, past, SUBJECT_IS_PAST)
/* And all that is the same of every noun which somebody starts: `a` is its table in the statement, with a dot. */
#define STARTED_FIELDS(X, P, a, key_column)                                                                            \
	X(P##_SUBJECT, INT, subject, a "subject")                                                                      \
	SUBJECT_FIELDS(X, P)                                                                                           \
	X(P##_WORKSPACE, TEXT, workspace, a "workspace")                                                               \
	X(P##_KEY, TEXT, key, a key_column)                                                                            \
	X(P##_REQUESTER, TEXT, requester, a "requester")                                                               \
	X(P##_TRACE, TEXT, trace, a "trace")                                                                           \
	X(P##_ATTRIBUTES, TEXT, attributes, a "attributes")                                                            \
	X(P##_ERROR, TEXT, error, a "error")                                                                           \
	X(P##_DUE_AT, INT, due_at, a "due_at")                                                                         \
	X(P##_CREATED_AT, INT, created_at, a "created_at")                                                             \
	X(P##_STARTED_AT, INT, started_at, a "started_at")                                                             \
	X(P##_COMPLETED_AT, INT, completed_at, a "completed_at")                                                       \
	X(P##_EXPIRED, FLAG, expired, a "expired")

/* It has come to its end, and only a person brings it back. */
#define SUBJECT_IS_OVER "s.status IN ('COMPLETED', 'FAILED', 'CANCELLED')"
/*
 * Those of a table whose time is over, ?2 of them, the oldest first. The function is volatile on PostgreSQL: bare, it would be a filter
 * over all that have such a time.
 */
#define SCAN_PAST(table, time, more)                                                                                   \
	"SELECT subject FROM " table " WHERE " time " <= (SELECT hx_now_ms())" more " ORDER BY " time " LIMIT ?2"
/* That have ended ?1 ms ago. */
#define SCAN_ENDED(table, more) SCAN_PAST(table, "completed_at", " - ?1" more)

/* Who writes, when, in which unit. */
struct stamp {
	int64_t op;
	struct wall_time at;
	const char *node;
};

/* The change asked for. Texts are borrowed until the unit is answered. */
struct move {
	int64_t subject;
	const char *from;
	const char *to;
};

/* A new subject in its first status, version 1, in a unit whose verdict stands elsewhere: an id that exists is a data error, which
 * nobody meets. */
void subject_insert(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t kind, const char *status);
/* Not out of a claim: only its holder or the janitor end one. Row of line 0: version reached, fence. */
void subject_transition(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version);
/* Row of line 0: version reached, fence. The claim lasts lease_ms from the moment of the write. */
void subject_claim(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		   int64_t lease_ms);
void subject_finish(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence);
enum released {
	RELEASED_OPEN,     /* nothing is known about the effect that was not known before */
	RELEASED_ANSWERED, /* the action itself said that it did nothing, and no earlier try of this effect is in doubt */
	RELEASED_IN_DOUBT, /* it may have been done, or be under way */
};
void subject_release(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence,
		     enum released released);
/* A janitor's release: only while the claim it saw is still there and past its time. */
void subject_revert(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence);
/*
 * A claim past its time passes to a new holder, in the same status, with the next fence: for those who have to
 * find out what the last holder did before they may end its claim. Row: version reached, fence.
 */
void subject_take_over(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *status, int64_t fence,
		       int64_t lease_ms);
/*
 * Parks a claim for a person: it has no end of its own any more, and SUBJECT_HELD as its owner. By its holder, or
 * (if_past) by a janitor, only when its time has passed.
 */
#define SUBJECT_HELD "held"
void subject_hold(struct unit *unit, int64_t subject, int64_t fence, bool if_past);
/*
 * A move that stands for several transitions at once: one history row covers them, the version rises by their number.
 * Both rows: version reached, fence.
 */
enum { CHILD_NONE, CHILD_UNTOLD, CHILD_TOLD };
struct stride {
	int64_t transitions;
	int64_t lease_ms; /* the writer holds the subject after it, for so long from then on; 0: nobody does */
	bool doubt;       /* what was begun under the claim may have been done, and it is not known */
	int child;        /* a run with a parent: has it read that it is to fail? Who has not, and is, is LOST */
};
/*
 * A new subject, and the seize of whoever makes it: nobody can be first. Two rows of history; `from` is its first status. Its verdict, too,
 * stands elsewhere in the unit.
 */
void subject_insert_held(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t kind,
			 const struct stride *stride);
/* LOST: the version is another by now, or somebody holds it. */
void subject_seize(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		   const struct stride *stride);
/* By the holder. LOST: it is another's by now, or its status was shifted. */
void subject_advance(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence,
		     const struct stride *stride);
/*
 * By anybody: owner, until and fence stay as they are. Row: version reached, fence. version 0: whatever it is, as long as
 * somebody holds it: a holder that moves fast must not keep others from ever getting in. SHIFT_UNHELD: whatever it is, as long as
 * nobody does. settles: there is no doubt any more.
 */
#define SHIFT_UNHELD (-1)
void subject_shift(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		   bool settles);
/*
 * By anybody: whoever holds it, holds it no more, and what it was at may have been done (doubt). Row: version reached, fence.
 */
void subject_withdraw(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version);
/* Writes neither version nor history; the op is not recorded. */
void subject_heartbeat(struct unit *unit, int64_t subject, int64_t fence, int64_t lease_ms);

/* The history row of a change that a unit of another file has made before, in the same unit. */
void subject_add_history(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *from);

/*
 * What the change was about, for people: beside its history row, after it in the same unit. The chain does not vouch for it. .p NULL: nothing
 * is said. What is longer than these limits is cut, the output left out.
 */
#define NOTE_REASON_MAX 500
#define NOTE_OUTPUT_MAX 16384
/* Of a change that takes what somebody had leased: his time was over. */
#define SUBJECT_LAPSED "the lease before was over"
struct history_note {
	struct slice step, requester, reason, by, output;
};
void subject_add_note(struct unit *unit, int64_t subject, const struct history_note *note);

/* Reads. Row: status, version, fence, until (NULL when not claimed), effort, doubt. No row: there is no such subject. */
void subject_read(struct unit *unit, int64_t subject);
/* A guard for lines that have none of their own: holds the subject still. LOST: its version is another. */
void subject_is_at(struct unit *unit, int64_t subject, int64_t version);
/*
 * Was this op's write on the subject won? Holds the subject still, so that on PostgreSQL a commit whose answer
 * was lost has ended, either way, before the question is answered. Row: version, fence.
 * Wakes the subject's watchers: the wake of the lost commit may have come before the commit itself.
 */
void subject_look_up(struct unit *unit, int64_t subject, int64_t op);
/* The history goes, but for its head; whoever decided on what he had read before loses. For retention, after its own verdict. */
void subject_strip(struct unit *unit, int64_t subject);
/* Claims past their time, by id from `after` on, at most `limit`. Row: id, kind, status, fence. */
void subject_scan_stuck(struct unit *unit, int64_t after, int64_t limit);
/*
 * All claims on subjects of this kind are past their time. For a node that knows that it is alone, before it begins: whoever
 * held them is dead. Fences stay, so a claim is taken over as any other that has lapsed.
 */
void subject_end_claims(struct unit *unit, int64_t kind);
/* Row: how far the store's clock lags the last change of a subject that is claimed; NULL: none is. */
void subject_last_seen(struct unit *unit);
/* The store's clock was set back by so much: claims that are not past their time end so much earlier. For the same node. */
void subject_advance_claims(struct unit *unit, int64_t by_ms);
/* A row as it was read: what S2 and S4 say of it. In debug builds (base/error.h). */
void subject_assert_valid(int64_t version, int64_t fence, const struct db_value *owner, const struct db_value *until);

/* The number that stands in subject.kind for a name such as "entity:billing" or "job". */
int64_t subject_kind(const char *prefix, const char *name);
