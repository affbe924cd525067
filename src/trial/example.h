/*
 * An example: given, when, then. `hapax test` carries it out with the machinery of a trial (the engine's own tasks on a store in
 * memory), along one schedule: everything goes on as far as it can, services answer as the example says, and time is skipped.
 *
 *   { "definitions": "order.json", "world": "order.world.json",
 *     "tests": [
 *       { "name": "a lost answer is not charged twice",
 *         "given": { "input": { "total": 20 }, "services": { "charge": ["timeout_after", "done"] } },
 *         "when": [ { "wait": "5m" }, { "cancel": true } ],
 *         "then": { "status": "CANCELLED", "ledger": { "charge": 1, "refund": 1 } } } ] }
 *
 * It may be about several that are in one world: given.with is the second, whose with is the third, and then.with the same. A run
 * begins where `start` says so, or at the beginning; one that a hook starts where `tell` does.
 *
 * What is done in `when` is done where nothing goes on any more but time, one after the other; or `during` a call, whose answer waits. After the last, time is skipped until
 * nothing goes on at all; where the last is a wait, `then` is looked at when that is over. `then` names what is to be compared, and
 * leaves out the rest. The rules of a trial hold here as well.
 */
#pragma once

#include "model/load.h"
#include "trial/trial.h"

#define EXAMPLES_MAX 500     /* of one file */
#define EXAMPLE_WHENS_MAX 16 /* of one example, like the rest: */
#define EXAMPLE_SERVICES_MAX 32
#define EXAMPLE_OUTCOMES_MAX 16
#define EXAMPLE_PATHS_MAX 32 /* definitions of one file */
#define EXAMPLE_TEXT_MAX 200
#define EXAMPLE_DIFFERENCES_MAX 16
#define EXAMPLE_MONEY_MAX 1000000
#define EXAMPLE_SUBJECTS_MAX TRIAL_MEMBERS_MAX

/*
 * Besides what a service may do (enum trial_may): whoever calls it dies, or stands still past its lease, and it was not done, or was,
 * or is done at any time after that. In the order of enum sim_cut, both.
 */
enum {
	OUTCOME_CRASH = MAYS_N,
	OUTCOME_CRASH_AFTER,
	OUTCOME_CRASH_LATE,
	OUTCOME_PAUSE,
	OUTCOME_PAUSE_AFTER,
	OUTCOME_PAUSE_LATE,
	OUTCOMES_N
};
const char *example_outcome_name(unsigned outcome);

struct example_service {
	const char *name; /* of the action */
	size_t line;
	unsigned n; /* the last one goes for all calls after it */
	unsigned char outcomes[EXAMPLE_OUTCOMES_MAX];
};

/* One of the first eleven. */
struct example_when {
	const char *fire, *event, *approve, *reject;
	const char *start; /* as `of`: this run begins */
	const char *tell;  /* this action's service, which has done it, calls its hook */
	bool cancel;
	int64_t credit; /* so much is paid in; 0: it is not that */
	int64_t accept; /* this item of a batch; -1: it is not that */
	int64_t wait_ms;
	const char *land;        /* what this action's service was asked for, and is late with, happens now */
	const char *during;      /* it is done while a call of this action is under way; NULL: where nothing goes on */
	const char *as;          /* who fires; NULL: anyone */
	const char *id;          /* of the event; NULL: one of its own */
	struct json input, data; /* .raw.p NULL: {} */
	const char *answer;      /* the code that is to be heard; NULL: any */
	const char *of;   /* a workflow of the test's: to whom it is done; "x/2": the second x. NULL: to the first */
	unsigned subject; /* which one that is: example_file_check() finds it, and who is told, examples_run() */
	size_t line;
};

/* A run, an entity or a batch that a test is about. */
struct example_subject {
	const char *workflow; /* NULL: that of the first definition */
	const char *status;   /* of the entity; NULL: its initial one */
	struct json input;
	int64_t balance;                    /* of the account of a batch; 0: enough */
	const struct example_subject *with; /* the next; NULL: none */
	size_t line;
};

struct example {
	struct example_subject first; /* it stands first: a table reads both (example_file.c) */
	const char *name;
	size_t line;
	size_t services_n;
	const struct example_service *services;
	size_t whens_n;
	const struct example_when *whens;
	struct json then;
	size_t then_line;
};

struct example_file {
	const char *file;
	size_t definitions_n;
	const char *definitions
		[EXAMPLE_PATHS_MAX]; /* as written: from the folder of the file. None: order.json of order.test.json */
	const char *world;           /* NULL: none */
	size_t n;
	const struct example *examples;
};

/* What is not valid is a finding. Texts live in the arena. */
void example_file_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			struct example_file *ret);
/* Names that no definition has. */
void example_file_check(const struct example_file *file, const struct definition_set *set, struct findings *findings);

/* Which definition this is; NULL: there is none. */
const struct definition *example_definition(const struct definition_set *set, const struct example_subject *subject);

struct example_difference {
	const char *path, *expected, *was;
	size_t line;
};

struct example_result {
	const struct example *example;
	bool passed;
	size_t differences_n;
	struct example_difference differences[EXAMPLE_DIFFERENCES_MAX];
	const struct trial_story *story; /* what has happened */
	unsigned begins; /* a bit for each of its subjects: at the beginning, before the first of `when` */
	unsigned untold; /* a bit for each of its whens: a `tell` where there was nothing to tell */
	struct {
		const char *make;                       /* tables of the world's, as statements; NULL: none is given */
		const char *look;                       /* asks SQLite for all their rows, as JSON */
		const char *rows[EXAMPLE_SUBJECTS_MAX]; /* of a subject that lives in one: its id */
	} tables;
	const char *end; /* JSON: how it stood at the end, also after a rule was broken; NULL: it never came to one */
	const char *
		real; /* on a real server (cli/replay.h): what of that was otherwise; "": nothing. NULL: it was not tried there */
};

struct example_report {
	const char *file;
	size_t n, failed;
	struct example_result *results;
	size_t covered_n; /* of the steps of its definitions, by all its examples together */
	struct trial_covered covered[TRIAL_COVERED_MAX];
};

/* The definitions have been checked, and are changed as by trial_run(). All that the report points to lives in the arena. */
void examples_run(const struct example_file *file, const struct definition_set *set, const struct trial_world *world,
		  struct arena *arena, struct example_report *ret_report);

/* The service of an action, for who mocks it elsewhere. */
struct example_mock {
	const char *action;
	bool repeats; /* twice is as good as once */
	bool dedupes, guesses, voids;
	struct slice returns;
	const char *tells, *event; /* as trial_service_said has them */
	bool fires;                /* an entity is told */
};
size_t example_mocks(const struct definition_set *set, const struct trial_world *world, struct arena *arena,
		     const struct example_mock **ret_mocks);

/* What `then` expects and this (JSON: status, doubt, steps, ledger, output) is not becomes a difference. */
enum hx_code example_compare(const struct example *example, struct slice sight, struct arena *arena,
			     struct example_result *result, struct hx_error *err) HX_MUST_CHECK;

void example_report_words(const struct example_report *report, struct strbuf *out);
void example_report_json(const struct example_report *report, struct strbuf *out);
void example_report_junit(const struct example_report *report, struct strbuf *out);
