/*
 * What callers do to a function: the verbs of run_verb.h, decided on what function_read() gives. Whatever they change goes through the same
 * write as a call of its worker, so a verb and a call never both win on one revision.
 *
 *   cancel    what is open is dropped; CANCELLED where nobody has the turn and nothing is unknown or to be undone, else CANCELLING
 *   pause     PAUSED: no turn is handed out; who has one is told, and its outcomes are taken
 *   resume    RUNNING while a worker has the turn, else where it rests
 *   retry     FAILED: the step that the failure named begins anew, with a new key, unless entries follow its end; what is held for ten
 *             lapses or for a journal that does not fit gets a turn; of one that is CANCELLING, the undo that has failed
 *   event     kept; the oldest entry that waits for it takes it, at once or when it is asked for
 *   approve   the entry of that name that is open
 *   migrate   while nobody has its turn: its turns are for workers of another version from then on, who replay the journal
 *   resolve   the step, or undo, of that name that is unknown: done, or begun again with the same key
 */
#pragma once

#include "flow/function.h"
#include "flow/run_verb.h"

/* The three parts of the verb's task that are a function's: after the run was read, its journal is, and decided on, and that is written. */
void function_verb_begin(struct run_verb *v, const struct answer *answer);
void function_verb_read(const struct run_verb *v, struct unit *unit);
void function_verb_take(struct run_verb *v, const struct answer *answer);
void function_verb_write(const struct run_verb *v, struct unit *unit);
