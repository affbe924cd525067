/* Carrying an example out: one schedule, chosen here, of the edges that the simulator has. See example.h. */
#include "trial/example.h"

#include <stdlib.h>

#include "base/json_canonical.h"
#include "base/json_tree.h"
#include "sim/home.h"
#include "sim/invariant.h"
#include "sim/sim_parts.h"
#include "trial/parts.h"

#define STEPS_MAX 5000
#define SIGHT_BYTES_MAX (1u << 20)
#define SCRATCH_BYTES_MAX (8u << 20)
#define ENOUGH 60000 /* of each mishap: examples say which there are */

/* One example that is under way. */
struct stage {
	struct trial *t;
	struct sim *sim;
	const struct example *example;
	struct example_result *result;
	struct explore_listener *teller;
	unsigned calls[EXAMPLE_SERVICES_MAX]; /* so far */
	size_t at;                            /* of the whens: the next one */
	unsigned steps;
	bool aftermath; /* a rule was broken, and it goes on to its end all the same: how it stood there is compared elsewhere */
};

static void add_difference(struct example_result *result, struct arena *arena, size_t line, const char *path,
			   struct slice expected, struct slice was)
{
	if (result->differences_n < EXAMPLE_DIFFERENCES_MAX)
		result->differences[result->differences_n++] = (struct example_difference){
			.path = arena_copy(arena, slice_str(path)).p,
			.expected = arena_copy(arena, expected).p,
			.was = arena_copy(arena, was).p,
			.line = line,
		};
}

static void differ(struct stage *s, size_t line, const char *path, struct slice expected, struct slice was)
{
	if (!s->aftermath)
		add_difference(s->result, s->t->arena, line, path, expected, was);
}

static bool is_over(const struct stage *s)
{
	return s->aftermath ? s->steps > STEPS_MAX : s->sim->violation[0] || s->result->differences_n;
}

static void stage_take(struct stage *s, struct sim_edge edge)
{
	if (s->steps++ == STEPS_MAX) {
		differ(s, s->example->line, "end", slice_str("comes to an end"),
		       slice_str("still goes on after 5000 steps"));
		return;
	}
	if (!s->aftermath)
		s->teller->before(s->teller, s->sim, edge);
	(void)sim_take(s->sim, edge);
	if (!s->aftermath)
		s->teller->after(s->teller, s->sim, edge);
	else
		s->sim->violation[0] = '\0';
}

/* ---- what goes on by itself ---- */

static unsigned outcome_of(struct stage *s, const struct act_call *call)
{
	int64_t subject;
	const struct trial_caller *c = trial_caller_of(s->t, call, &subject);

	for (size_t i = 0; c && i < s->example->services_n; i++) {
		const struct example_service *service = &s->example->services[i];
		unsigned n = s->calls[i];

		if (strcmp(service->name, c->service->action->name) != 0)
			continue;
		s->calls[i]++;
		return service->outcomes[n < service->n ? n : service->n - 1];
	}
	return MAY_DONE;
}

static void take_act(struct stage *s, unsigned actor)
{
	static const enum sim_act acts[MAYS_N] = {
		[MAY_DONE] = SIM_ACT_OK,
		[MAY_FAILED] = SIM_ACT_FAILED,
		[MAY_REJECTED] = SIM_ACT_INVALID,
		[MAY_FAILED_AFTER] = SIM_ACT_LIED,
		[MAY_TIMEOUT] = SIM_ACT_UNKNOWN_NOT,
		[MAY_TIMEOUT_AFTER] = SIM_ACT_UNKNOWN_DONE,
		[MAY_LATE] = SIM_ACT_LATE,
	};
	struct act_call call = sim_call_of(&s->sim->state.actors[actor]);
	unsigned outcome = outcome_of(s, &call);

	if (outcome < MAYS_N)
		stage_take(s, (struct sim_edge){EDGE_ACT, (unsigned char)actor, (unsigned char)acts[outcome], 0});
	else if (outcome < OUTCOME_PAUSE)
		stage_take(s, (struct sim_edge){EDGE_CRASH, (unsigned char)s->t->scenario.cast[actor].node,
						(unsigned char)(outcome - OUTCOME_CRASH), 0});
	else if (s->t->scenario.user->lease_end(s->sim) != INT64_MAX)
		stage_take(s,
			   (struct sim_edge){EDGE_TIME, 0, (unsigned char)(outcome - OUTCOME_PAUSE), /* paused= */ 1});
	else
		differ(s, s->example->line, example_outcome_name(outcome), slice_str("whoever calls has a lease"),
		       slice_str("it has none"));
}

static const char *name_of_call(const struct stage *s, unsigned actor)
{
	struct act_call call = sim_call_of(&s->sim->state.actors[actor]);
	int64_t subject;
	const struct trial_caller *c = trial_caller_of(s->t, &call, &subject);

	return c ? c->service->action->name : "";
}

/* Its answer waits for what is to be done during the call. */
static bool is_held(const struct stage *s, unsigned actor)
{
	const struct example *e = s->example;

	return s->at < e->whens_n && e->whens[s->at].during &&
	       strcmp(e->whens[s->at].during, name_of_call(s, actor)) == 0;
}

static bool has_held(const struct stage *s)
{
	for (unsigned i = 0; i < s->t->scenario.cast_n; i++)
		if (sim_is_acting(&s->sim->state.actors[i]) && is_held(s, i))
			return true;
	return false;
}

/* False: nothing goes on but time. Calls are answered last, so that whatever runs beside one has come as far as it can. */
static bool go_on(struct stage *s)
{
	struct sim_edge edges[SIM_EDGES_MAX];
	size_t n = sim_edges(s->sim, edges);

	for (size_t i = 0; i < n; i++)
		if (edges[i].kind == EDGE_WRITE || edges[i].kind == EDGE_AGAIN) {
			stage_take(s, edges[i]);
			return true;
		}
	for (size_t i = 0; i < n; i++)
		if (edges[i].kind == EDGE_ACT && !is_held(s, edges[i].who)) {
			take_act(s, edges[i].who);
			return true;
		}
	return false;
}

static void settle(struct stage *s)
{
	while (!is_over(s) && go_on(s))
		;
}

static void wait_for(struct stage *s, int64_t ms)
{
	int64_t end = s->sim->state.now.ms + ms, next;

	settle(s);
	while (!is_over(s) && (next = sim_next_moment(s->sim)) >= 0 && next <= end) {
		stage_take(s, (struct sim_edge){EDGE_TIME, 0, CUT_NOT_DONE, 0});
		settle(s);
	}
	if (!is_over(s))
		sim_set_now(s->sim, (struct wall_time){end});
}

/* What is late comes when all else is over. */
static void skip_to_the_end(struct stage *s)
{
	settle(s);
	while (!is_over(s)) {
		if (sim_next_moment(s->sim) >= 0)
			stage_take(s, (struct sim_edge){EDGE_TIME, 0, CUT_NOT_DONE, 0});
		else if (trial_late_n(s->sim))
			stage_take(s, (struct sim_edge){EDGE_LAND, 0, 0, 0});
		else
			break;
		settle(s);
	}
	if (!is_over(s))
		invariant_quiet(s->sim);
}

/* ---- what is done ---- */

/* The caller who has nothing to do; the last one otherwise. */
static unsigned free_caller(const struct stage *s)
{
	unsigned found = 0;

	for (unsigned i = 0; i < s->t->scenario.cast_n; i++) {
		if (s->t->actors[i].part != PART_CALLER)
			continue;
		found = i;
		if (s->sim->state.actors[i].state == SIM_DONE)
			break;
	}
	return found;
}

/* What was put off, of this action; -1: nothing. */
static int late_of(const struct stage *s, const char *action)
{
	const struct trial_ledger *ledger = trial_ledger(s->sim);

	for (unsigned i = 0; i < ledger->late_n; i++)
		if (strcmp(s->t->callers[ledger->late[i].caller].service->action->name, action) == 0)
			return (int)i;
	return -1;
}

/* Nothing where it is not late any more: it may have been voided, or taken back. */
static void land(struct stage *s, const struct example_when *when)
{
	int which = late_of(s, when->land);

	if (which >= 0)
		stage_take(s, (struct sim_edge){EDGE_LAND, 0, (unsigned char)which, 0});
}

/* Its time, too, begins now. */
DB_STMT(begin_run, "trial_begin_run", "i", "",
	"UPDATE hx_run SET due_at = hx_now_ms(), times_out_at = times_out_at - created_at + hx_now_ms(), created_at = hx_now_ms()"
	" WHERE subject = ?1");

static void begin(struct stage *s, unsigned subject)
{
	LOCAL_UNIT(unit);

	s->t->begun |= 1u << subject;
	UNIT_ADD(&unit, UNIT_ANY, &begin_run, db_int(TRIAL_SUBJECT + subject));
	if (s->t->members_n > 1)
		(void)sim_run_unit(s->sim, &unit);
}

static bool has_begun(struct stage *s, const struct example_when *when)
{
	bool begun = s->t->begun >> when->subject & 1;

	if (!begun)
		differ(s, when->line, "when", slice_str("it has begun"), slice_str("it has not"));
	return begun;
}

static void click(struct stage *s, const struct example_when *when, size_t which)
{
	unsigned caller = free_caller(s);
	const struct sim_actor *actor = &s->sim->state.actors[caller];
	const char *heard;

	if (!has_begun(s, when))
		return;
	stage_take(s, (struct sim_edge){EDGE_AGAIN, (unsigned char)caller, (unsigned char)which, 0});
	settle(s);
	if (when->during && actor->state != SIM_DONE) /* it may wait for that call itself */
		return;
	heard = actor->state == SIM_DONE && actor->task.task.kind ? hx_code_name(actor->code) : "nothing";
	if (!is_over(s) && when->answer && strcmp(heard, when->answer) != 0)
		differ(s, when->line, "answer", slice_str(when->answer), slice_str(heard));
}

/* Of a run that has begun, or this begins it. Nothing where the service has not done it. */
static void tell(struct stage *s, const struct example_when *when, size_t which)
{
	const struct trial_service *service = trial_teller_of(s->t, when->tell);
	const struct trial_ledger *ledger = trial_ledger(s->sim);
	bool done = false;

	for (unsigned i = 0; i < ledger->n && service; i++)
		done |= strcmp(s->t->callers[ledger->effects[i].caller].service->action->name, when->tell) == 0;
	if (!service)
		differ(s, when->line, "tell", slice_str("the world says whom its service tells"),
		       slice_str("it does not"));
	else if (!done)
		s->result->untold |= 1u << which;
	else if (service->event)
		click(s, when, which);
	else
		begin(s, when->subject);
}

/* To where it is done: nothing goes on, or the call is under way that it is done during. */
static void come_to(struct stage *s, const struct example_when *when)
{
	settle(s);
	while (!is_over(s) && when->during && !has_held(s) && sim_next_moment(s->sim) >= 0) {
		stage_take(s, (struct sim_edge){EDGE_TIME, 0, CUT_NOT_DONE, 0});
		settle(s);
	}
	if (!is_over(s) && when->during && !has_held(s))
		differ(s, when->line, "during", slice_str(when->during), slice_str("no call of it is under way"));
}

/*
 * False: it did not come to that. What is done during a call holds that call until it is done; what is done otherwise may begin the
 * call that the next one is done during.
 */
static bool do_when(struct stage *s)
{
	const struct example_when *when = &s->example->whens[s->at];
	size_t which = s->at;

	if (!when->wait_ms)
		come_to(s, when);
	if (is_over(s))
		return false;
	s->at += !when->during;
	if (when->wait_ms)
		wait_for(s, when->wait_ms);
	else if (when->land)
		land(s, when);
	else if (when->start)
		begin(s, when->subject);
	else if (when->tell)
		tell(s, when, which);
	else
		click(s, when, which);
	settle(s); /* also what has just begun comes as far as it can */
	s->at += when->during != NULL;
	return true;
}

/* ---- what has come of it ---- */

static bool is_same(struct json a, struct json b)
{
	struct hx_error err;
	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);

	LOCAL_STRBUF(x, SIGHT_BYTES_MAX);
	LOCAL_STRBUF(y, SIGHT_BYTES_MAX);
	return json_canonical(a, &scratch, &err, &x) == HX_OK && json_canonical(b, &scratch, &err, &y) == HX_OK &&
	       slice_eq(strbuf_slice(&x), strbuf_slice(&y));
}

struct comparison {
	const struct example *example;
	struct arena *arena;
	struct example_result *result;
};

/* Objects by the members that are expected, all else as a whole; what is not there is null. */
static void compare(const struct comparison *c, const struct json_node *expected, const struct json_node *was,
		    const char *path)
{
	struct json null = json_trust(slice_str("null"));

	if (expected->type != JSON_OBJECT || !was || was->type != JSON_OBJECT) {
		struct json is = was ? was->value : null;

		if (!is_same(expected->value, is))
			add_difference(c->result, c->arena, c->example->then_line + expected->at.line - 1, path,
				       expected->value.raw, is.raw);
		return;
	}
	json_node_for_each(member, expected)
	{
		char deeper[EXAMPLE_TEXT_MAX];

		snprintf(deeper, sizeof deeper, "%s%s%.*s", path, path[0] ? "." : "", SLICE_ARGS(member->name));
		compare(c, member, json_node_member_slice(was, member->name), deeper);
	}
}

enum hx_code example_compare(const struct example *example, struct slice sight, struct arena *arena,
			     struct example_result *result, struct hx_error *err)
{
	struct comparison c = {example, arena, result};
	const struct json_node *expected, *was;
	enum hx_code code = json_tree_parse(example->then.raw, UINT16_MAX, arena, err, &expected);

	if (!code)
		code = json_tree_parse(sight, UINT16_MAX, arena, err, &was);
	if (!code)
		compare(&c, expected, was, "");
	return code;
}

static const char *sight_of(struct stage *s)
{
	LOCAL_STRBUF(sight, SIGHT_BYTES_MAX);

	trial_sight_of_all(s->sim, &sight);
	return arena_copy(s->t->arena, strbuf_slice(&sight)).p;
}

static void look_at_end(struct stage *s)
{
	struct hx_error err;

	if (example_compare(s->example, slice_str(s->result->end), s->t->arena, s->result, &err))
		differ(s, s->example->then_line, "then", slice_str("can be compared"), slice_str(err.detail));
}

static void go_through(struct stage *s)
{
	const struct example *e = s->example;

	/* One after the other, each where nothing goes on any more. */
	for (unsigned i = 0; i < s->t->members_n && !is_over(s); i++)
		if (s->result->begins & ~s->t->begun & 1u << i) {
			begin(s, i);
			settle(s);
		}
	while (s->at < e->whens_n && !is_over(s) && do_when(s))
		;
	if (s->at == e->whens_n && !is_over(s) && (!s->at || !e->whens[s->at - 1].wait_ms))
		skip_to_the_end(s);
}

/* A rule that is broken is a difference; how it would have ended is not, but is told. */
static void go_on_to_the_end(struct stage *s)
{
	differ(s, s->example->line, trial_rule_name(s->t->broken), slice_str("the rule holds"),
	       slice_str(s->sim->violation));
	s->aftermath = true;
	s->sim->violation[0] = '\0';
	go_through(s);
	s->aftermath = false;
}

static void carry_out(struct stage *s)
{
	go_through(s);
	if (s->sim->violation[0])
		go_on_to_the_end(s);
	if (s->at == s->example->whens_n)
		s->result->end = sight_of(s);
	if (!s->result->differences_n)
		look_at_end(s);
	s->result->passed = s->result->differences_n == 0;
}

/* ---- all of them ---- */

static const struct trial_machine *machine_of(const struct trial *t, const char *workflow)
{
	for (size_t i = 0; i < t->machines_n; i++)
		if (!workflow || strcmp(t->machines[i].of->name, workflow) == 0)
			return &t->machines[i];
	return NULL;
}

static size_t fill_members(const struct trial *t, const struct example *e, struct trial_member *members)
{
	size_t n = 0;

	for (const struct example_subject *s = &e->first; s; s = s->with) {
		const struct trial_machine *machine = machine_of(t, s->workflow);

		ASSERT(machine && n < EXAMPLE_SUBJECTS_MAX);
		members[n++] = (struct trial_member){.machine = machine,
						     .input = s->input.raw.p ? s->input.raw : slice_str("{}"),
						     .start = !machine->entity ? NULL
							      : s->status      ? s->status
									       : machine->of->entity->initial_status,
						     .balance = s->balance ? s->balance : TRIAL_BALANCE};
	}
	return n;
}

static void tell_tables(struct trial *t, struct example_result *result)
{
	LOCAL_STRBUF(make, SIGHT_BYTES_MAX);

	if (!t->tables.names_n)
		return;
	strbuf_add_str(&make, strchr(t->user.schema, ';')); /* without what is ours */
	for (size_t i = 0; i < t->members_n; i++)
		if (trial_tables_put(&t->members[i], &make))
			result->tables.rows[i] = t->members[i].machine->row.p;
	result->tables.make = arena_keep(t->arena, &make).p;
	result->tables.look = t->tables.look.sql;
}

static void run_one(struct trial *t, const struct example *e, struct sim *sim, struct example_result *result)
{
	struct trial_member members[EXAMPLE_SUBJECTS_MAX] = {0};
	struct trial_story *story = arena_zalloc(t->arena, sizeof *story);
	struct stage stage = {.t = t, .sim = sim, .example = e, .result = result};
	struct hx_error err;

	ASSERT(story);
	memset(t->again, 0, sizeof t->again);
	*result = (struct example_result){.example = e, .story = story};
	trial_begin(t, members, fill_members(t, e, members), e->name);
	t->scenario.bounds = (struct sim_bounds){ENOUGH, ENOUGH, ENOUGH, ENOUGH, 0, ENOUGH};
	result->begins = trial_script(t, e);
	stage.teller = trial_teller(t, story);
	if (t->wrong) {
		differ(&stage, e->line, "tables", slice_str("can be made"), slice_str(t->wrong));
		return;
	}
	if (sim_open(sim, &t->scenario, &err)) {
		differ(&stage, e->line, "store", slice_str("opens"), slice_str(err.detail));
		return;
	}
	tell_tables(t, result);
	carry_out(&stage);
	sim_close(sim);
}

static const struct trial_options options = {.nodes = 2, .callers = 2};

size_t example_mocks(const struct definition_set *set, const struct trial_world *world, struct arena *arena,
		     const struct example_mock **ret_mocks)
{
	const struct trial *t = trial_new(set, world, &options, arena);
	struct example_mock *mocks = arena_zalloc(arena, (t->services_n + 1) * sizeof *mocks);

	ASSERT(mocks);
	for (size_t i = 0; i < t->services_n; i++) {
		const struct trial_service *s = &t->services[i];
		const struct trial_machine *told = s->tells ? machine_of(t, s->tells) : NULL;

		mocks[i] = (struct example_mock){s->action->name, s->repeats, s->dedupes, s->guesses,          s->voids,
						 s->returns,      s->tells,   s->event,   told && told->entity};
	}
	*ret_mocks = mocks;
	return t->services_n;
}

void examples_run(const struct example_file *file, const struct definition_set *set, const struct trial_world *world,
		  struct arena *arena, struct example_report *ret_report)
{
	struct trial *t = trial_new(set, world, &options, arena);
	struct sim *sim = malloc(sizeof *sim);

	*ret_report = (struct example_report){.file = file->file,
					      .n = file->n,
					      .results = arena_zalloc(arena, file->n * sizeof *ret_report->results)};
	ASSERT(sim && ret_report->results);
	for (size_t i = 0; i < file->n; i++) {
		run_one(t, &file->examples[i], sim, &ret_report->results[i]);
		ret_report->failed += !ret_report->results[i].passed;
	}
	free(sim);
	sim_homes_release();
	ret_report->covered_n = trial_fill_covered(t, ret_report->covered);
}
