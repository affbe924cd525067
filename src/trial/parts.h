/* For the files of a trial alone. */
#pragma once

#include "flow/account.h"
#include "flow/batch.h"
#include "flow/batch_verb.h"
#include "flow/entity_orphans.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "flow/job_work.h"
#include "flow/run_verb.h"
#include "flow/schedule.h"
#include "trial/example.h"

#define TRIAL_MACHINES_MAX 32
#define TRIAL_ACTIONS_MAX 256
#define TRIAL_FIRES_MAX 64  /* steps that callers could fire, of one scenario */
#define TRIAL_CLICKS_MAX 16 /* what callers could do to a run */
#define TRIAL_EFFECTS_MAX 36
#define TRIAL_LATE_MAX 4
#define TRIAL_OBEYS_MAX 32 /* children that were told something */
#define TRIAL_OWN_MAX 256  /* rules of the user's own, of all files together */
#define TRIAL_SUBJECT 1    /* of the first member; the second has the next, and so on */

/* What a call is for. */
enum trial_role { ROLE_ACTION, ROLE_UNDO, ROLE_AFTER, ROLE_ASK, ROLE_VOID, ROLES_N };

#define TRIAL_ITEM "item" /* what the step of a batch is called */

/* An action as its service is in this world. */
struct trial_service {
	const struct action *action;
	unsigned may; /* bits of enum trial_may */
	bool repeats; /* twice is as good as once */
	bool dedupes, guesses, voids;
	struct slice returns;
	const char *tells, *event; /* as trial_service_said has them */
};

/* Whoever calls: a step in one of its roles, or a step that calls nobody. */
struct trial_caller {
	const struct definition *of;
	const char *step; /* "": the definition itself */
	enum trial_role role;
	size_t line;
	const struct trial_service *service; /* NULL: calls nobody */
	const struct run_step *run_step;     /* or NULL */
	size_t order;                        /* of steps, for compensations */
	unsigned seen;
	bool reached;
};

struct trial_machine {
	const struct definition *of;
	const struct entity_machine *entity; /* or */
	const struct run_machine *run;       /* or */
	const struct batch_machine *batch;
	int64_t version;
	const struct trial_machine *next;     /* the version after it, to which runs may be migrated; NULL: none */
	const struct schedule_file *schedule; /* that starts it; NULL: none */
	unsigned
		meets; /* of the user's tables, that it touches: bits of trial.tables.names[]; and higher ones, of services that tell */
	struct slice row; /* of one of these that is the entity: its id */
	bool limited;     /* two of it share a limit */
};

/* A run, an entity or a batch that is in the world from its start: one, or several that meet on a table or by a hook. */
struct trial_member {
	const struct trial_machine *machine;
	struct slice input;
	const char *start; /* of an entity: its status */
	int64_t balance;   /* of the account of a batch */
	struct entity_ref ref;
};

/* Something that a caller could do. */
struct trial_click {
	const char *words;
	struct run_verb_request rq;
	unsigned max; /* times */
};
struct trial_fire {
	const struct trial_machine *machine;
	const struct trial_member *member;
	const struct step *step;
	const char *requester;
	struct step_request rq;
};

/* What has happened outside; stands in the notes of the state. */
struct trial_effect {
	uint64_t key; /* hashed */
	int64_t subject;
	unsigned char caller; /* trial.callers[] */
	unsigned char asked;  /* while it is still to happen: how often a probe was asked about it */
	unsigned char spare[6];
};
struct trial_ledger {
	unsigned char n, late_n, clicks;
	unsigned char used[TRIAL_CLICKS_MAX];       /* of the clicks */
	unsigned char fired[TRIAL_CALLERS_MAX + 1]; /* by each caller, and by a hook: which of fires[], from 1 */
	struct trial_effect effects[TRIAL_EFFECTS_MAX];
	struct trial_effect late[TRIAL_LATE_MAX];
};
_Static_assert(sizeof(struct trial_ledger) <= SIM_NOTES_BYTES, "the notes have room");

/* A hook is a caller who fires what somebody is told to fire, and that alone. */
enum trial_part { PART_CALLER, PART_DRIVER, PART_JANITOR, PART_WORKER, PART_DELIVERER, PART_OPERATOR };

struct trial;
struct trial_actor {
	struct trial *trial;
	enum trial_part part;
	unsigned n; /* of its part */
	bool hook;
	char name[24];
};

/* The member whose row in hx_subject this is. */
#define TRIAL_MEMBER_AT(t, subject) (&(t)->members[(subject)-TRIAL_SUBJECT])
/* The entity's subject, or the run's. */
#define TRIAL_SUBJECT_OF(t, member) (TRIAL_SUBJECT + ((member) - (t)->members))

struct trial {
	struct sim_scenario scenario; /* first: from sim->scenario to here */
	struct arena *arena;
	const struct trial_world *world;
	const struct definition *adding; /* whose services are being added */
	const struct trial_options *options;
	size_t machines_n;
	struct trial_machine machines[TRIAL_MACHINES_MAX];
	size_t services_n;
	struct trial_service services[TRIAL_ACTIONS_MAX];
	size_t callers_n;
	struct trial_caller callers[TRIAL_ACTIONS_MAX];
	/* Of the scenario at hand: */
	size_t members_n;
	struct trial_member members[TRIAL_MEMBERS_MAX];
	bool has_run, has_entity; /* among them */
	struct sim_subject others[TRIAL_MEMBERS_MAX - 1];
	struct sim_user user;
	const struct trial_machine *machine; /* of the first */
	struct trial_actor actors[SIM_ACTORS_MAX];
	size_t fires_n;
	struct trial_fire fires[TRIAL_FIRES_MAX];
	size_t clicks_n, clicks_max;
	struct trial_click clicks[TRIAL_CLICKS_MAX];
	size_t rules_n;
	struct janitor_rule rules[TRIAL_FIRES_MAX];
	struct janitor_rules janitor, new_janitor; /* by the version that comes under way */
	struct new_version new_version;
	struct job_claim_request claim;
	struct run_policy policy;
	struct batch_policy batch_policy;
	struct account_credit_request credit;
	struct batch_verb_request accepts[2];
	char credit_key[12];
	int64_t pays; /* whoever pays in, so much */
	struct step_request recover;
	struct schedule_policy slots;
	struct run_verb_request slot_cancel;
	bool scripted;                           /* callers do what an example says, and nothing else */
	unsigned begun;                          /* of an example: its members that have begun, bits */
	unsigned char places[EXAMPLE_WHENS_MAX]; /* of an example: see trial_scripted() */
	unsigned again
		[TRIAL_ACTIONS_MAX]; /* of an example: so often the service did again what the ledger has already */
	struct sim *sim;             /* that is walked through */
	struct {
		size_t names_n; /* TRIAL_TABLES_MAX at most */
		const char *names[TRIAL_TABLES_MAX];
		struct db_stmt look; /* at all their rows */
		struct db *db;       /* aside, while the trial is made */
	} tables;                    /* of the user's; none is given where there are no names */
	const char *wrong;           /* why nothing can be explored; NULL: it can */
	bool rows_changed;
	size_t obeys_n;
	struct run_verb_request obeys[TRIAL_OBEYS_MAX];
	/* What broke first: */
	enum trial_rule broken;
	int broken_caller;                   /* -1: none */
	const struct user_rule *broken_said; /* the user's own rule; NULL: none */
	/* The user's own rules, of the world and of the definitions, and which of them were ever true: */
	size_t own_n;
	struct user_rule own[TRIAL_OWN_MAX];
	bool own_reached[TRIAL_OWN_MAX];
	/* Left out: */
	bool has_sql, has_table, has_more_rules, has_function, has_old, has_batch_schedule;
	bool has_effects; /* after-effects, also those that nobody is called for */
	bool has_events;  /* something may be sent to runs, or decided */
};

static inline struct trial *trial_of(const struct sim *sim)
{
	return (struct trial *)(uintptr_t)sim->scenario;
}

static inline struct trial_ledger *trial_ledger(const struct sim *sim)
{
	return (struct trial_ledger *)(uintptr_t)sim->state.notes;
}

/* Is there anything that becomes a job? */
static inline bool trial_has_jobs(const struct trial *t)
{
	return t->claim.queues_n || t->has_effects;
}

/* Has the run a schedule that starts it? One that meets another workflow has not: that is another world. */
static inline bool trial_has_slots(const struct trial *t)
{
	return t->machine->schedule && t->members_n == 1;
}

/* The columns of trial_runs that are looked at for all of them. */
enum { TRIAL_RUN_DUE = 14, TRIAL_RUN_ASKED, TRIAL_RUN_LEFT_ITS_END };

/* rows.c: the store, seen from here. */
extern const struct sim_rows trial_rows;
struct unit_result trial_ask(struct sim *sim, const struct db_stmt *stmt);
struct unit_result trial_ask_of(struct sim *sim, const struct db_stmt *stmt, int64_t subject);
void trial_setup(struct sim *sim);
int64_t trial_lease_end(struct sim *sim);
extern const struct db_stmt trial_past, trial_worker_due, trial_effect_due, trial_repeated_sql, trial_steps_ended,
	trial_runs, trial_run_steps, trial_jobs, trial_history, trial_sql_counts, trial_output;

/* An entity as the engine reads it: columns of flow/entity.h. */
/* A claim of the entity is in doubt, and put away. */
bool trial_keeps_a_claim(struct sim *sim, const struct trial_member *m);
struct unit_result trial_read_entity(struct sim *sim, const struct trial_member *m);

bool trial_forgets_versions(const struct sim *sim);

/* machines.c */
void trial_add_machine(struct trial *t, const struct definition *d, int64_t version);

/* trial.c */
struct trial *trial_new(const struct definition_set *set, const struct trial_world *world,
			const struct trial_options *options, struct arena *arena);
/* Sets the scenario up: who takes part in it, and where it begins. start: of an entity. */
void trial_begin(struct trial *t, const struct trial_member *members, size_t n, const char *name);
extern const char *const trial_entity_names[TRIAL_MEMBERS_MAX];
size_t trial_fill_covered(const struct trial *t, struct trial_covered covered[TRIAL_COVERED_MAX]);

/* Would this service, or anybody in this world, call a hook of the member's: for the event or the step, or (NULL) to start it? */
bool trial_tells(const struct trial *t, const struct trial_service *s, const struct trial_member *m, const char *event);
bool trial_awaits_hook(const struct trial *t, const struct trial_member *m, const char *event);
/* Has it come to that a hook of this workflow was called (event NULL: to start it)? Yes, where nobody in this world would call it. */
bool trial_is_told(const struct sim *sim, const struct trial_member *m, const char *event);
/* A run that a hook starts is not, before that. */
bool trial_is_begun(const struct sim *sim, int64_t run);
/* Two entities that are one row of a table of the user's. */
bool trial_is_one_row(const struct trial_machine *a, const struct trial_machine *b);

/* cast.c */
void trial_cast(struct trial *t);
void trial_add_click(struct trial *t, unsigned max, struct run_verb_request rq, const char *words);
void trial_add_fire(struct trial *t, const struct trial_member *member, const struct trial_machine *m,
		    const struct step *step, const char *requester);
const char *trial_words_of(struct trial *t, const char *format, const char *name);
unsigned trial_rounds(struct sim *sim, unsigned actor);
bool trial_is_bystander(const struct sim *sim, unsigned actor);
bool trial_is_eager(const struct sim *sim, unsigned actor);
bool trial_stands_still(const struct sim *sim, unsigned actor);
/* The newest where there is no such version. */
const struct run_machine *trial_machine_of(const void *context, struct slice workflow, int64_t version);

/* script.c: what an example does, after trial_begin(). Its callers' rounds are numbered as its whens are. */
/* Returns who begins at the beginning: bits. */
unsigned trial_script(struct trial *t, const struct example *example);
int trial_scripted(const struct trial *t, unsigned when);
/* Whose service calls a hook, by its action; NULL: none does. */
const struct trial_service *trial_teller_of(const struct trial *t, const char *action);

/* worker.c: a program outside of the engine that carries jobs out. */
void trial_worker_init(union sim_task *task, struct trial *trial, struct arena *texts);

/* tenure.c: a node's time with a batch, or a cancel and what follows it. */
void trial_tenure_init(union sim_task *task, struct trial *trial, bool cancels, struct arena *texts);

/* slots.c: the schedule that starts the run. */
extern const struct db_stmt trial_slot_due, trial_slot_next, trial_hash_slots;
void trial_slots_setup(struct sim *sim);
unsigned trial_slots_due(struct sim *sim);
void trial_slots_init(union sim_task *task, struct trial *trial, struct arena *texts);
void trial_slots_check(struct sim *sim);

/* put.c: a version of an entity's definition that comes under way. */
struct trial_put {
	struct task task;
	struct trial *trial;
};
bool trial_is_put(struct sim *sim);
/* The version that a node goes by, if it has heard of the newest. */
const struct trial_machine *trial_in_force(struct sim *sim);
void trial_put_prepare(struct trial *t);
void trial_put_init(union sim_task *task, struct trial *t);

/* tables.c: tables of the user's. */
/* What makes and fills them, and our own. */
const char *trial_tables_make(struct trial *t, const struct definition_set *set);
void trial_tables_made(struct trial *t);
/* Which of them the statements of a sql action name. They are run as they are, and counted after that. */
unsigned trial_tables_touched(struct trial *t, struct action *action, const struct action_statement *count);
/* NULL: the engine keeps its entities, in this world. */
const struct entity_table *trial_tables_entity(struct trial *t, struct workflow *w, struct trial_machine *m);
void trial_tables_setup(struct sim *sim);
/* The status that it begins in, as a statement after a semicolon. False: it lives in no table of the user's. */
bool trial_tables_put(const struct trial_member *m, struct strbuf *out);

/* Whose an effect is, by the subject in its key: a run that was started belongs to the one that is at the root. */
const struct trial_member *trial_member_of(struct sim *sim, int64_t subject);

/* batches.c */
enum trial_batch_act { BATCH_CANCELS, BATCH_PAYS, BATCH_ACCEPTS, BATCH_ACTS = BATCH_ACCEPTS + 2 };
#define TRIAL_BALANCE 5 /* enough */
#define TRIAL_PAYS 10
/* What callers could do now, how many; which: the how-manieth is *ret_act. NULL: of none. */
unsigned trial_batch_offers(struct sim *sim, const unsigned *which, enum trial_batch_act *ret_act);
void trial_batch_init(union sim_task *task, struct trial *trial, enum trial_batch_act act, struct arena *texts);
extern const struct db_stmt trial_batch, trial_items, trial_due_batches, trial_hash_batch, trial_hash_items;
void trial_batch_setup(struct sim *sim);
void trial_batch_check(struct sim *sim);
void trial_batch_quiet(struct sim *sim);

/* ledger.c: what services do. */
bool trial_allows(const struct sim *sim, const struct act_call *call, enum sim_act how);
struct answer trial_end(struct sim *sim, const struct act_call *call, enum sim_act how);
enum trial_may trial_may_of(enum sim_act how);
void trial_cut(struct sim *sim, const struct act_call *call, enum sim_cut how);
unsigned trial_late_n(const struct sim *sim);
void trial_land(struct sim *sim, unsigned which);
/* The subject in a key of a run, of an entity, or of an item. */
bool trial_key_subject(struct slice key, int64_t *ret_subject);
/* Who calls there; NULL: nobody that is known. *ret_subject: whose key it is. */
struct trial_caller *trial_caller_of(struct trial *t, const struct act_call *call, int64_t *ret_subject);

/* A step that calls nobody was come to. */
void trial_reached(struct trial *t, const struct definition *of, const char *step);

/* rules.c */
void trial_check(struct sim *sim);
void trial_quiet(struct sim *sim);
void trial_break(struct sim *sim, enum trial_rule rule, const struct trial_caller *caller, const char *format, ...)
	HX_PRINTF(4, 5);

/* own_rules.c: the user's, on every edge and where nothing goes on any more. */
void trial_check_own(struct sim *sim, bool quiet);
/*
 * What a test sees, as JSON: status, doubt, steps, ledger, output of a run, tables; and with it, the same way, the next member. Zeros stand
 * there of what has not happened; `happened` is the ledger of all.
 */
void trial_sight_of_all(struct sim *sim, struct strbuf *out);

/* suggest.c: changes that might help, each tried by the walk that it is given. */
typedef void trial_again_fn(void *context, uint64_t edges_max, struct trial_report *ret_report);
void trial_suggest(struct trial *t, const struct trial_story *story, trial_again_fn *again, void *context,
		   struct trial_report *report);

/* blame.c: what of the definition let it happen. */
void trial_blame(struct trial *t, struct trial_story *story);

/* scribe.c: a story as a test of a file of `hapax test`; NULL: it has no room for it. */
const char *trial_as_test(struct trial *t, const struct explore_found *found, const struct trial_story *story);

/* story.c */
void trial_tell(struct trial *t, const struct explore_found *found, struct trial_story *story);
/* Whoever follows a schedule asks it before and after each step; what has happened is added to the story. */
struct explore_listener *trial_teller(struct trial *t, struct trial_story *story);
