/*
 * The children of a run: runs that it has started, and waits for. A child is a run like any other, with a parent: it is driven,
 * leased, retried, paused, resolved and told of as one. What is different stands here.
 *
 *   parent's step    begins                             its children
 *   child            one                                of another workflow
 *   map              so many at a time, in slices       of another workflow, or of the part that is its task
 *   parallel         all at once                        of the parts that are its branches
 *   repeat           one after the other                of the part that is its body
 *
 *   (the step is reached) ─ move with children ─▶ WAITING, awaits "child" ─┬ one ends ─▶ due: read them ─┬ more to begin ─▶ move with children
 *                                                                          │                             ├ all are done ──▶ the step is done
 *                                                                          │                             └ one has failed ▶ the others are asked
 *                                                                          └ cancel, pause ─▶ they are asked                to; then it fails
 *
 * How a child looks to its parent (hx_run.child): open ─▶ done | failed | cancelled; a word that is asked makes it open again.
 *
 * Going down: no unit writes the subject of another run. The parent's unit leaves a word on the rows of its children
 * (hx_run.asked). Cancel, pause, resume and retry are carried out as a caller's verb would be, by whoever finds the word
 * (engine/run_asked.h). To fail is for who drives the child: one that rests is due, and one that is at work loses its next move, reads
 * the word, records what it did and begins nothing more. (Only a move that is being written just then does not see it: nothing locks
 * both, so that children do not wait for each other.)
 *
 * A word to be cancelled stands until it is heard, also where the child comes to its end before that: a parent that is a function asks once.
 *
 * Coming up: the move that ends a child makes its parent due, in that unit, if it awaits its children; and the parent's rest looks
 * for what has ended since it read (so many are to be open): both hold the parent's lock.
 *
 * Invariants (beside R1 to R8 of run.h; the simulator checks each of them on every edge):
 *  C1  One child for each (parent, step, n), made in a move of its parent that stands at that step, and in no other.
 *  C2  No child is made after the unit that made its parent CANCELLING, or one that its parent is a child of, near or far (the move that
 *      makes it, or the decision of a function, holds all of them still); and none that was made before is taken up to go forward. (On
 *      PostgreSQL a child that is taken up just then does not see the cancel: its step was begun before that was answered, as far as
 *      anybody can tell.)
 *  C3  A step is COMPLETED only when none of its children is open. `any`: one is done, the winner, and the others are cancelled.
 *  C4  A run is CANCELLED only when all of its children are; steps are undone in reverse, with the children of each.
 *  C5  A run that awaits its children has an open one, or is due.
 *  C6  The winner is written once for each step.
 *  C7  A map has at most `concurrency` open children.
 *  C8  Only its parent's word moves a COMPLETED child.
 *  C9  Of two parts that await the same event one takes it.
 *  C10 A run is FAILED only when none of its children is open.
 */
#pragma once

#include "flow/run.h"

#define RUN_AWAITS_CHILD "child"
#define RUN_CHILDREN_SLICE 128 /* made in one unit */
#define RUN_MAP_ITEMS_MAX 100000

/* hx_run.child. */
#define CHILD_OPEN "open"
#define CHILD_DONE "done"
#define CHILD_FAILED "failed"
#define CHILD_CANCELLED "cancelled"

/* hx_run.asked. */
#define CHILD_ASKED_CANCEL "cancel" /* "cancelling" once it is heard */
#define CHILD_ASKED_FAIL "fail"
#define CHILD_ASKED_PAUSE "pause"
#define CHILD_ASKED_RESUME "resume"
#define CHILD_ASKED_RETRY "retry"

/* Children that a move of their parent makes: numbers from on, one for each of the rows. */
struct run_brood {
	const struct run_step *step;
	const struct run_machine *machine; /* of the children */
	bool sees_around;                  /* their input has the state of this run in it, and they hear its events */
	int64_t from;
	struct slice key;       /* of each, up to its number */
	struct slice rows;      /* [[id, "input", scope or null, "attributes" or null], …]; .p NULL: none */
	int64_t n;              /* so many */
	bool described;         /* some have attributes */
	struct slice limit_key; /* of parts: that of the run around them; .p NULL: there is no limit */
};
/* The parent's row, in whose unit it stands, gives workspace, requester, trace and depth. */
void run_children_make(struct unit *unit, const struct stamp *stamp, const struct run_row *parent,
		       const struct run_brood *brood);

/* A word for the children of a step. */
struct run_asking {
	const struct run_step *step;
	const char *word;  /* NULL: nothing is asked */
	int64_t only, but; /* numbers; -1: all, none */
};
/* Leaves it on those that it is news for: cancel for all, retry for those that have failed, else for open ones. */
void run_children_ask(struct unit *unit, int64_t parent, const struct run_asking *asking);
/* The same for the children of all steps. */
void run_children_ask_all(struct unit *unit, int64_t parent, const char *word);

/*
 * In the unit that ends a child: that its parent is to look. How the parent sees it from now on is a change of its row, which whoever
 * writes that row anyway writes as well, by these words about the value `to`: one that comes to its end before it has heard that it is to
 * be cancelled is still to be, since its parent may not look again.
 */
void run_child_tells(struct unit *unit, const struct run_row *row, const char *to);
const char *run_child_seen(const char *to);
#define CHILD_SEEN(to, unheard)                                                                                        \
	"child = CASE WHEN " unheard " THEN child ELSE " to " END, asked = CASE WHEN " unheard " THEN asked END"
#define CHILD_UNHEARD(to) "asked = 'cancel' AND " to " <> '" CHILD_CANCELLED "'"
/* Both, for those who do not write it. */
void run_child_ended(struct unit *unit, const struct run_row *row, const char *to);
/* The open parts of a run, near and far. Row: subject, scope. */
void run_read_parts(struct unit *unit, int64_t around);
/* In the unit that writes an event of the run: its parts that await it are due. */
void run_parts_due(struct unit *unit, int64_t around, struct slice awaits);
/* In the unit that carries out what is asked for. */
void run_child_heard(struct unit *unit, const struct run_row *row);
/* Children with a word that nobody has carried out (flow/due_watch.h). */
extern const struct due_source run_asked_source;
/* In the move of a child that makes children itself, or its decision as a function: LOST when its tree is being cancelled. */
void run_children_guard(struct unit *unit, const struct run_row *row);
/* For the move of a child (struct stride): LOST when it is to fail, and who holds it has not read that. */
int run_child_knows(const struct run_row *row);

/* What the parent's task knows of the children of a step. */
struct run_kids {
	const struct run_step *step; /* NULL: nothing was read */
	int64_t begun, open;
	int64_t failed;              /* the first that failed or was cancelled alone; -1: none */
	int64_t winner;              /* -1: none */
	int64_t standing;            /* the last that is not cancelled; -1: none */
	int64_t bytes;               /* of the outputs of those that are done, where the step saves them */
	const struct run_kid *first; /* those that were asked for, by number; NULL: none */
};
struct run_kid {
	const struct run_kid *next;
	int64_t n, completed_at;
	struct slice state, output, error; /* .p NULL: none */
};
/*
 * Which rows: none; the last; all, when so many were begun, none is open, and what they have put out fits a step; or all when none is
 * open, however many were begun and however large that is: one of them may have decided. That of the first failed one is always there.
 */
enum run_kids_wanted {
	KIDS_COUNT,
	KIDS_LAST,
	KIDS_ALL,
	KIDS_BEGUN,
	KIDS_POLLED, /* nothing of them: one row, if somebody polls for a function of the name that the step has for them */
};
void run_children_read(struct unit *unit, int64_t parent, const struct run_step *step, enum run_kids_wanted wanted,
		       int64_t of);
/* False: the arena is full. */
bool run_kids_take(const struct unit_result *result, const struct run_step *step, struct arena *arena,
		   struct run_kids *ret_kids);
