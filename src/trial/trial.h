/*
 * A trial: a user's own definitions, walked through by the simulator (sim/) with the engine's own tasks, in a world where services
 * time out, nodes die and people click twice. It ends with the shortest way to break a rule, told as a story, or with what was seen.
 *
 *   definitions ─▶ scenarios: a run for each input; an entity for each status that a step begins in
 *   each scenario ─▶ walked with 0 mishaps, with 1, … up to all that the bounds allow: the first story has the fewest
 *
 * Rules that always hold:
 *  once      an effect happens at most once for each decision: once under each key
 *  undone    what is cancelled is undone, and nothing that was undone happens after that
 *  reverse   compensations go from the last step to the first
 *  silence   nothing has happened outside that the engine neither has as done nor as unknown, or shows to a person
 *  stuck     where nothing goes on, nothing is left half done without a person or an event that it waits for
 *  last      what has ended has ended
 *  money     of a batch: what was charged, less what was returned and refunded, is what is gone
 *  same      of a function: it comes to the same end in every schedule, and diverges in none
 *  never, always, ends, sometimes   what the user says besides, in a definition or a world's file
 *  engine    the invariants of sim/invariant.h and sim/run_rules.h: a broken one is a fault of ours, and no definition's
 *
 * Same files, same options, same seed: the same bytes. Nothing is read from a clock: the limit is a number of edges, unless whoever
 * asks says when it is over.
 */
#pragma once

#include "model/load.h"
#include "model/trial_world.h"
#include "sim/explore.h"

#define TRIAL_EDGES_A_SECOND 50000 /* --seconds is so many edges: the same on every machine */
#define TRIAL_STATES_MAX 4000000
#define TRIAL_NODES_MAX 3
#define TRIAL_CALLERS_MAX 3
#define TRIAL_MEMBERS_MAX 3
#define TRIAL_MISHAPS_MAX 9 /* of each kind */

struct trial_options {
	unsigned nodes, callers;
	unsigned together; /* of several workflows that meet, so many in one world */
	unsigned crashes, pauses, lost, failures;
	unsigned mishaps; /* of all these together */
	uint64_t edges_max;
	uint64_t seed; /* 0: edges are tried in their own order */
	const struct definition_set
		*old; /* runs begin with these, and may be migrated; NULL: with those that are explored */
	bool brief;   /* nothing is suggested, which would be explored as well */
	void (*progress)(void *context, const char *scenario, const struct explore_report *so_far); /* NULL: nobody */
	bool (*is_over)(
		void *context); /* that is enough: it is bounded, and nothing is suggested any more; NULL: nobody says so */
	void *context;
};

enum trial_rule {
	RULE_ENGINE,
	RULE_ONCE,
	RULE_UNDONE,
	RULE_REVERSE,
	RULE_SILENCE,
	RULE_STUCK,
	RULE_LAST,
	RULE_MONEY,
	RULE_SAME,
	RULE_NEVER, /* of the user's own, in the order of enum trial_rule_kind */
	RULE_ALWAYS,
	RULE_ENDS,
	RULE_SOMETIMES,
	RULES_N,
};
const char *trial_rule_name(enum trial_rule rule);

/* Where a line of a story stands on a page. */
enum trial_lane { LANE_CALLER, LANE_NODE, LANE_STORE, LANE_SERVICE, LANE_TIME, LANES_N };

/* One line of a story. */
struct trial_event {
	const char *who; /* "caller-1", "node-a", "charge", "time" */
	const char *what;
	const char *file; /* of the step or the action that it is about; NULL: of none */
	size_t line;
	enum trial_lane lane;
};

/* What has happened outside, and with which line of the story. */
struct trial_happened {
	const char *action, *step;
	size_t event; /* from 1 */
};

#define TRIAL_EVENTS_MAX 400
#define TRIAL_HAPPENED_MAX 40

struct trial_story {
	enum trial_rule rule;
	const char *scenario;
	const char *broken; /* in words */
	unsigned mishaps;
	bool shortest;
	const char *file; /* of what let it happen */
	size_t line;
	const char *workflow, *step, *action;
	const char *field;      /* "on_unknown", "effect"; NULL: none */
	const char *why;        /* what of that field let it happen, in words */
	const char *assumption; /* of docs/guarantees.md that does not hold, "A5"; NULL: the definition is to blame */
	size_t events_n;
	struct trial_event events[TRIAL_EVENTS_MAX];
	const char *test; /* the same as a test of a file of `hapax test`; NULL: it is more than a test has room for */
	size_t happened_n;
	struct trial_happened happened[TRIAL_HAPPENED_MAX];
};

/* A step, or what else calls a service, and which of its outcomes were reached. */
struct trial_covered {
	const char *workflow, *step, *what, *file;
	size_t line;
	unsigned may, seen; /* bits of enum trial_may; of a step that calls nobody: none */
	bool reached;
	const char *const *names; /* of these bits, if they are others; NULL: they are not */
	int names_n;
};

/* A change of the definition that was tried: it was explored again with it. */
struct trial_suggestion {
	const char *change; /* "on_unknown: hold" */
	const char *where;  /* "step charge" */
	const char *file;
	size_t line;
	const char *provided; /* what has to be true besides; NULL: nothing */
	bool clean, complete;
};

#define TRIAL_SUGGESTIONS_MAX 4
#define TRIAL_COVERED_MAX 400
#define TRIAL_LEFT_OUT_MAX 16

struct trial_report {
	struct explore_report walked;
	size_t scenarios_n;
	bool worker;               /* of a function's workers: states are schedules, edges are calls */
	bool complete;             /* all of it within the bounds */
	unsigned complete_mishaps; /* bounded: all with up to so many mishaps was complete; -1u: not even without any */
	const struct trial_story *story; /* NULL: no rule was broken */
	size_t suggestions_n;            /* those that helped */
	struct trial_suggestion suggestions[TRIAL_SUGGESTIONS_MAX];
	size_t covered_n;
	struct trial_covered covered[TRIAL_COVERED_MAX];
	size_t left_out_n;
	const char *left_out[TRIAL_LEFT_OUT_MAX]; /* what was not explored, in words */
};

/*
 * The definitions have been checked and have no errors; they are changed for the trial (sql actions count instead of running). All
 * that the report points to lives in the arena. HX_VALIDATION_ERROR: there is nothing here that can be explored.
 */
enum hx_code trial_run(const struct definition_set *set, const struct trial_world *world,
		       const struct trial_options *options, struct arena *arena, struct trial_report *ret_report,
		       struct hx_error *err) HX_MUST_CHECK;

/* As words for a person, and as one JSON object with a line end. */
void trial_report_words(const struct trial_report *report, const struct trial_options *options, struct strbuf *out);
void trial_report_json(const struct trial_report *report, const struct trial_options *options, struct strbuf *out);
/*
 * As a page that needs nothing else: the story as lanes, gone through by keyboard, the ledger, the definitions and what of them was
 * covered. Its one script is always the same bytes, and the page's policy lets no other run.
 */
void trial_report_html(const struct trial_report *report, const struct trial_options *options,
		       const struct definition_set *set, struct strbuf *out);
/* For the machines that build. */
void trial_report_junit(const struct trial_report *report, struct strbuf *out);
void trial_report_sarif(const struct trial_report *report, struct strbuf *out);
/* How far it went and what that means, two lines. */
void trial_verdict_words(const struct trial_report *report, const struct trial_options *options, struct strbuf *out);
/* A text for XML, also in an attribute's double quotes: it means nothing there but itself. */
void trial_add_xml(struct strbuf *out, const char *text);
/* {"who","what","file","line"} of each, without the brackets. */
void trial_events_json(const struct trial_story *story, struct strbuf *out);
/* Lines with numbers. */
void trial_events_words(const struct trial_story *story, struct strbuf *out);
