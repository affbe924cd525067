/* What the files of drill.h share. */
#pragma once

#include "base/json.h"
#include "cli/drill.h"
#include "cli/puppet.h"

#define DRILL_CUTS_MAX 4
#define DRILL_CAST_MAX 8
#define DRILL_CALLS_MAX 400   /* of one schedule */
#define DRILL_EFFECTS_MAX 200 /* steps of all its runs */
#define DRILL_RUNS_MAX 32
#define DRILL_LEDGER_MAX 400

/* What becomes of one call, in the order in which they are tried. */
enum drill_cut {
	CUT_KILLED_BEFORE, /* it did not arrive, and the worker is killed */
	CUT_KILLED_AFTER,  /* it was taken, and the worker is killed */
	CUT_LOST_AFTER,    /* it was taken, and the answer is lost */
	CUT_LOST_BEFORE,
	CUT_TWICE,       /* it comes twice */
	CUT_LATE_BEFORE, /* it comes after the lease, when another worker has gone on */
	CUT_LATE_AFTER,  /* it was taken; the worker stands still until the lease is over, and another has gone on */
	DRILL_CUTS_N,
};
/* A claim that did not arrive is none, and one that comes twice hands out nothing more. */
#define CLAIM_CUTS (1u << CUT_KILLED_AFTER | 1u << CUT_LOST_AFTER | 1u << CUT_LATE_AFTER)
extern const char *const drill_cut_names[DRILL_CUTS_N];

/* What people do. Events and approvals come when a run waits for them. */
enum drill_people { PEOPLE_WILLING, PEOPLE_REJECT, PEOPLE_SILENT, PEOPLE_TWICE, PEOPLE_CANCEL, PEOPLES_N };

struct drill_schedule {
	enum drill_people people;
	unsigned cancel_at; /* PEOPLE_CANCEL: when this call comes */
	size_t input;       /* of the world */
	unsigned cuts_n;
	struct {
		unsigned at; /* the call */
		enum drill_cut cut;
		unsigned beside; /* late: the other worker makes so many calls; 0: until it rests */
	} cuts[DRILL_CUTS_MAX];
	unsigned from; /* what this comes from was cut before this call: cuts of the next level are at it, or after */
};

/* A step of a run, as far as it shows. */
struct drill_effect {
	const char *run, *name; /* name: NAME, NAME#N */
	bool undo, claimed, probes, retries, to_undo, begun_ever;
	unsigned char said[DRILL_CAST_MAX]; /* by worker: 0 nothing, 1 begun, 2 an outcome */
	unsigned done, executed;
	struct json output;
	unsigned order; /* of its first end */
};

struct drill_ledger {
	const char *name, *key, *step; /* step: in which it was called, as far as it shows; NULL: in none */
	unsigned worker;
};

/* What a run waits for from people. */
struct drill_asked {
	const char *run, *name, *event; /* event NULL: an approval */
	unsigned sent;
};

struct drill_member {
	struct puppet *puppet; /* NULL: dead */
	bool paused;
	int held; /* turns that it has, as it believes */
	uint64_t last_body;
};

/* One schedule, as it is carried out. */
struct drill_play {
	struct drill *drill;
	const struct drill_schedule *schedule;
	struct arena arena; /* of its texts */
	struct drill_member cast[DRILL_CAST_MAX];
	unsigned cast_n;
	const char *runs[DRILL_RUNS_MAX]; /* ids; the first is the one that is explored */
	size_t runs_n;
	unsigned calls_n;
	bool is_claim[DRILL_CALLS_MAX];
	const char *labels[DRILL_CALLS_MAX];
	int64_t lease_ms;
	/* A call that is late: whose, what it is answered with when it is, and how many calls the other has made since. */
	struct {
		bool on, after, was;
		bool real; /* its worker has to see the time pass, too */
		unsigned worker, beside, want;
		uint64_t order; /* of the call */
		struct mono_time since;
		struct puppet_call *call;
		int status;
		struct slice answer;
	} late;
	size_t effects_n;
	struct drill_effect effects[DRILL_EFFECTS_MAX];
	unsigned outcomes; /* ends of steps so far, for their order */
	size_t asked_n;
	struct drill_asked asked[DRILL_EFFECTS_MAX];
	size_t ledger_n;
	struct drill_ledger ledger[DRILL_LEDGER_MAX];
	bool rests; /* the engine has nothing to do, and will not have */
	/* The end. */
	bool ended;
	const char *status;
	struct json run, output; /* the run as it is shown */
	bool broken;
	enum trial_rule rule;
	const char *words, *why, *field;
	const struct drill_effect *blamed;
	struct trial_story story;
};

/* What a schedule without cuts came to: what those with cuts are compared with. */
struct drill_base {
	bool known, steady; /* two came to the same */
	const char *status, *output, *effects;
	size_t ledger_n;
	struct {
		const char *name;
		unsigned n;
	} ledger[32];
};

struct drill {
	const char *command, *tries;
	const struct trial_world *world;
	const struct trial_options *options;
	struct arena *arena;
	struct hx_engine *engine;
	const char *function;
	struct puppet *spare; /* started, and not used yet */
	struct drill_base bases[PEOPLES_N];
	uint64_t calls, schedules;
	unsigned seen[DRILL_CALLS_MAX],
		may[DRILL_CALLS_MAX]; /* by the call of the plain schedule: bits of enum drill_cut */
	size_t labels_n;
	const char *labels[DRILL_CALLS_MAX];
	uint32_t own_reached; /* rules of the user's that are to be true sometimes */
	bool late_left_out;
	struct drill_effect repeated[16]; /* keyed steps that were executed more than once */
	size_t repeated_n;
	const char *silent; /* a keyed step that nobody knows of after a cancel; NULL: none */
	struct drill_play *play;
};

/* ---- drill_play.c ---- */

/* HX_OK: carried out; play->broken says whether a rule was. */
enum hx_code drill_play(struct drill *drill, const struct drill_schedule *schedule, struct drill_play *play,
			struct hx_error *err) HX_MUST_CHECK;
/* The engine's API. The answer lives in the play's arena; .p NULL: there is none. */
struct slice drill_ask(struct drill_play *play, const char *method, const char *path, struct slice body,
		       int *ret_status);
const char *drill_member_text(struct drill_play *play, struct json object, const char *member);
void drill_break(struct drill_play *play, enum trial_rule rule, const struct drill_effect *effect, const char *format,
		 ...) HX_PRINTF(4, 5);

/* A verb, which does nothing where it is refused. True: it was not. */
bool drill_verb(struct drill_play *play, const char *path, const char *body);
/* Moves the time, as the body says; by how much it was moved. */
int64_t drill_skip(struct drill_play *play, const char *by);
void drill_tell_time(struct drill_play *play, int64_t ms, const char *why);

/* ---- drill_people.c ---- */

/* COMPLETED, FAILED, CANCELLED. */
bool drill_is_over(const char *status);
/* True: something was done, or time was skipped, or it has ended. */
bool drill_be_people(struct drill_play *play);

/* ---- drill_book.c ---- */

const char *drill_worker_name(unsigned worker);
void drill_tell(struct drill_play *play, const char *who, enum trial_lane lane, const char *format, ...)
	HX_PRINTF(4, 5);
/* What a worker wants to write down. Returns its words. */
const char *drill_book(struct drill_play *play, unsigned worker, const char *run, struct json body);
/* It was taken: what is waited for is asked of people. */
void drill_book_taken(struct drill_play *play, const char *run, struct json body);
void drill_book_ledger(struct drill_play *play, unsigned worker, const char *name, const char *key);
/* Ids of runs are words that are the same each time. */
const char *drill_plain(struct drill_play *play, const char *text);
struct drill_effect *drill_effect_of(struct drill_play *play, const char *run, const char *name, bool undo);

/* ---- drill_judge.c ---- */

/* After each call, and at the end. */
void drill_check_own(struct drill_play *play, bool at_end);
void drill_judge(struct drill_play *play);
