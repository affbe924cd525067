/*
 * hapax explore --worker CMD: a function in code, its own workers, and every exchange between them and the engine cut.
 *
 *   worker-a ──┐                         an engine in this process, in memory, with a time that is skipped;
 *   worker-b ──┼─▶ puppet.h ─▶ drill ─▶  its API without a socket (hx_call). Nothing is a model of it
 *   …          ┘
 *
 * A schedule is a run of the function from its start, by workers that were started for it, with some of its calls cut (enum drill_cut).
 * A call is what moves a run on: a claim that hands out a turn, and what is written to the journal; they are counted from 1, as
 * the worker that is to have the turns makes them. All schedules with no cut come first, then all with one, then those with two.
 *
 *   drill.c        which schedules there are, in which order; what is suggested; the report
 *   drill_play.c   one schedule: who may say what when, people, time
 *   drill_people.c what people do, and time
 *   drill_book.c   what was executed, as far as it shows; the words of a story
 *   drill_judge.c  what must hold at the end of a schedule
 *
 * What was executed is not seen, it is concluded from what workers say, whether that arrives or not: an outcome that a worker wants to
 * write down is an execution, unless it is a probe's. That holds for workers in any language. What happens outside is seen where the
 * code calls HAPAX_LEDGER, a service of ours that keeps count.
 *
 * Not the same in each repetition: which of two workers that are alive is the faster one, and whatever the code itself leaves to
 * chance. Numbers of schedules and calls, and all words, are the same otherwise.
 */
#pragma once

#include "trial/trial.h"

#define DRILL_CALLS_A_SECOND 60 /* --seconds is so many calls: about what a machine does, and the same on every one */

/*
 * The files are definitions that the engine has besides. *ret_report is filled as by trial_run(); all that it points to lives in the
 * arena. HX_VALIDATION_ERROR: the worker does not start, or works on no function.
 */
struct drill_files {
	const char *const *paths;
	size_t n;
};
enum hx_code drill_run(const char *command, const struct drill_files *files, const struct trial_world *world,
		       const struct trial_options *options, struct arena *arena, struct trial_report *ret_report,
		       struct hx_error *err) HX_MUST_CHECK;
