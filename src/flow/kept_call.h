/*
 * The kept call: what was begun for a step of an entity and has no answer yet. As long as there is one, all tries of that step are this call,
 * under its key; the other steps of the entity have nothing to do with it.
 *
 *                      ┌─ no claim: noted before it is begun (kept_call_note) ──┐
 *   nothing is known ──┤                                                         ├─▶ A ROW of its own ── a definite answer ──▶ nothing
 *                      └─ a claim: noted with it, in the entity's row ── its     │    (its key)          in the unit that writes it
 *                         time is over ─▶ doubt = 1 ── whoever fires the next ───┘      ▲    │
 *                         step of the entity puts it away (kept_call_put_away)          └────┘ tried again (kept_call_again)
 *
 * The effort of its key is taken from the subject, which counts definite answers of all steps, at the moment when the first try is
 * written down. Then it stands in the row.
 *
 * A key is (subject, effort, step), and one of them is one row. Steps of one name from several statuses are one step where they call the same
 * action (step_kept.c judges that, by the definition that made the call), and have nothing to do with each other where they call another.
 *
 * Invariants:
 *  K1  A row goes only in the unit that writes a definite answer of that step, and in that unit the subject's effort is above the
 *      row's; so no later call of the step has its key.
 *  K2  A step is begun under a new key only while it has no row, and while no claim that is in doubt stands in the entity's row. (Rows that were
 *      written down since somebody looked have an effort that is not below the one which he has read.)
 *  K3  All that a row says is what was sent, and is sent again: only how often changes. (What was inside the store, sql say, was
 *      never sent: its row and its key are given up, as if it had been answered, before the step is begun anew.)
 *  K4  All rows are written in units that hold the subject.
 */
#pragma once

#include "db/unit.h"
#include "flow/entity_call.h"

/* The row's columns of entity_read(), in the order of entity.h, and what joins it. k is the row. */
#define KEPT_CALL_COLUMNS "k.step, k.from_status, k.requester, k.input, k.effort, k.address, k.version, k.data"
#define KEPT_CALL_OUT "ttttitit"
/* Of the step `step`; '': of that one whose call was begun last. e is the entity. */
#define KEPT_CALL_JOIN(step)                                                                                           \
	" LEFT JOIN hx_kept_call k ON k.subject = e.subject AND (k.step = " step " OR (" step " = ''"                  \
	" AND k.effort = (SELECT max(o.effort) FROM hx_kept_call o WHERE o.subject = e.subject)))"
/* One row for each, and the first is the one that was begun last. */
#define KEPT_CALL_ORDER " ORDER BY k.effort DESC, k.step"

/* Without a claim. LOST: there is one by now, or the key is another, or somebody has claimed or moved it since. */
void kept_call_note(struct unit *unit, int64_t op, int64_t subject, const struct entity_sent *call);
/* Once more: without a claim, in this unit, or by one. LOST: it was answered by now. */
#define KEPT_BY_CLAIM 0
void kept_call_again(struct unit *unit, int64_t op, int64_t subject, const struct entity_sent *call);
/* Was that the last one noted or begun again? As subject_look_up(), it holds the subject still. Row: the subject. */
void kept_call_look_up(struct unit *unit, int64_t op, int64_t subject);
/* The claim in the entity's row is in doubt, and that row is needed. Nothing, if somebody has claimed since, or put it away. */
void kept_call_put_away(struct unit *unit, int64_t subject, int64_t fence);
/* Of a claim, or with a transition: it was answered, in this unit. */
void kept_call_forget(struct unit *unit, int64_t subject, int64_t effort, struct slice step);
/*
 * It was answered without a claim, and nothing else is written. Not while somebody has claimed the entity for this step meanwhile, nor while
 * that is in doubt: it is the same call. alone: what was heard is certain of this one try, so it must be all there was.
 */
void kept_call_answered(struct unit *unit, int64_t subject, int64_t effort, struct slice step, bool alone);
