/* See janitors.h. */
#include "engine/janitors.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/batches.h"
#include "engine/engine.h"
#include "engine/functions.h"
#include "engine/runs.h"
#include "flow/entity_step.h"
#include "flow/job.h"

#define RULES_MAX 4096
#define RECOVER_BYTES_MAX (64u << 20)
#define RECOVERIES_MAX 1000 /* under way; those beyond are found again by a later sweep */

struct module_janitor {
	struct seat seat;
	struct janitor janitor;
	struct janitor_ended ended[JANITOR_TOLD];
	struct janitors *all;
	const char *module; /* NULL: the engine's own */
	int64_t every_ms;
	_Atomic bool gone; /* it is not in the configuration any more, or in another way: it ends with its sweep */
	/* Once: for whoever asked. */
	void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held);
	void *context;
	struct janitor_rules rules;
	struct janitor_rule memory[RULES_MAX];
	struct module_janitor *next;
};

/* ---- rules ---- */

static void add_rules(void *context, const struct machine *any)
{
	struct module_janitor *m = context;
	const struct entity_machine *machine = any->entity;
	const struct workflow *w = any->definition->entity;

	if (!machine || !m->module || strcmp(w->module, m->module) != 0)
		return;
	for (size_t i = 0; i < w->statuses_n && m->rules.n < RULES_MAX; i++) {
		const char *revert_to = workflow_revert_of(w, slice_str(w->statuses[i]));

		if (revert_to)
			m->memory[m->rules.n++] = (struct janitor_rule){
				.kind = machine->kind,
				.claim_into = w->statuses[i],
				.revert_to = revert_to,
				.machine = machine,
			};
	}
}

static void make_rules(struct module_janitor *m)
{
	const struct janitor_rule own[] = {
		{.kind = run_kind(), .claim_into = RUN_RUNNING, .hand_over = true},
		{.kind = run_kind(), .claim_into = RUN_CANCELLING, .hand_over = true},
		{.kind = run_kind(), .claim_into = RUN_PAUSED, .hand_over = true},
		{.kind = function_kind(), .claim_into = RUN_RUNNING, .hand_over = true},
		{.kind = function_kind(), .claim_into = RUN_CANCELLING, .hand_over = true},
		{.kind = function_kind(), .claim_into = RUN_PAUSED, .hand_over = true},
		{.kind = batch_kind(), .claim_into = BATCH_LOADING, .hand_over = true},
		{.kind = batch_kind(), .claim_into = BATCH_RUNNING, .hand_over = true},
		{.kind = batch_kind(), .claim_into = BATCH_CANCELLING, .hand_over = true},
		{.kind = job_kind(), .claim_into = JOB_RUNNING, .hand_over = true},
	};

	m->rules = (struct janitor_rules){0, m->memory};
	if (m->module) {
		definitions_each(m->all->parts->definitions, add_rules, m);
	} else {
		memcpy(m->memory, own, sizeof own);
		m->rules.n = sizeof own / sizeof *own;
	}
}

/* ---- claims whose step wants a probe ---- */

struct recovery {
	struct seat seat;
	struct entity_step step;
	struct step_request rq;
	struct arena arena;
	struct janitors *all;
};

static void recovery_free(struct recovery *r)
{
	atomic_fetch_sub(&r->all->recoveries_n, 1);
	arena_release(&r->arena);
	free(r);
}

static void recovered(struct seat *seat, enum hx_code code)
{
	struct recovery *r = (struct recovery *)seat;

	log_info(r->all->parts->log, "a stuck claim was probed",
		 log_text("workflow", r->rq.ref.machine->workflow->name), log_slice("id", r->step.name),
		 log_text("code", hx_code_name(code)));
	recovery_free(r);
}

static void recover(struct janitors *all, int64_t subject, const struct entity_machine *machine)
{
	const struct module_config *module = config_module(all->config, slice_str(machine->workflow->module));
	struct recovery *r = atomic_load(&all->recoveries_n) < RECOVERIES_MAX ? calloc(1, sizeof *r) : NULL;

	if (!r)
		return; /* the next sweep finds it again */
	r->all = all;
	r->rq = (struct step_request){
		.mode = STEP_RECOVER,
		.ref = {.machine = machine},
		.subject = subject,
		.lease_ms = module ? module->janitor.stuck_after_ms : all->config->lease_ms,
		.workflow_of = definitions_entity_version,
		.context = all->parts->definitions,
	};
	arena_init(&r->arena, RECOVER_BYTES_MAX);
	entity_step_init(&r->step, &r->rq, &r->arena);
	r->seat = (struct seat){.task = &r->step.task, .done = recovered};
	atomic_fetch_add(&all->recoveries_n, 1);
	if (lane_submit_own(lanes_of(all->parts->lanes, subject), &r->seat))
		recovery_free(r);
}

/* ---- sweeps ---- */

/* By its name, which commands take, and by what the keys of its effects begin with. */
static void tell_ended(const struct module_janitor *m, const struct janitor_ended *ended)
{
	const struct janitor_claim *claim = &ended->claim;

	log_warn(m->all->parts->log, "a stuck claim was ended: its holder's time was over",
		 log_text("workflow", claim->rule->machine->workflow->name), log_text("id", ended->name),
		 log_text("subject", id_text("ent", claim->subject).text), log_text("module", m->module),
		 log_int("fence", claim->fence), log_text("status", claim->rule->claim_into));
}

static void janitors_tell(const struct module_janitor *m)
{
	const struct janitor *j = &m->janitor;

	atomic_fetch_add(&m->all->parts->metrics->janitor_reverts, (uint64_t)j->reverted);
	atomic_fetch_add(&m->all->parts->metrics->janitor_holds, (uint64_t)j->held);
	if (j->unruled)
		log_debug(m->all->parts->log, "stuck claims that this janitor has no rule for",
			  log_text("module", m->module ? m->module : "the engine's own"),
			  log_int("claims", j->unruled));
	for (size_t i = 0; i < j->ended_n; i++)
		tell_ended(m, &j->ended[i]);
	if (j->reverted || j->held)
		log_warn(m->all->parts->log, "stuck claims were ended",
			 log_text("module", m->module ? m->module : "the engine's own"),
			 log_int("reverted", j->reverted), log_int("held", j->held));
}

static void start_module_janitor(struct module_janitor *m, struct mono_time at)
{
	make_rules(m);
	janitor_init(&m->janitor, &m->rules, JANITOR_BUDGET, at);
	m->janitor.ended = m->ended;
}

/* Out of the list, and out of memory. */
static void janitors_leave(struct module_janitor *m)
{
	struct janitors *all = m->all;
	struct module_janitor **at = &all->first;

	pthread_mutex_lock(&all->mutex);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	pthread_mutex_unlock(&all->mutex);
	free(m);
}

static void swept(struct seat *seat, enum hx_code code)
{
	struct module_janitor *m = (struct module_janitor *)seat;
	struct mono_time next = clock_mono(m->all->parts->clock);
	int64_t cursor;
	bool more;

	janitors_tell(m);
	for (size_t i = 0; i < m->janitor.handed_n; i++) {
		const struct janitor_claim *claim = &m->janitor.handed[i];

		if (claim->rule->kind == run_kind())
			runs_take_over(m->all->parts->runs, claim->subject);
		else if (claim->rule->kind == function_kind())
			functions_look_at(m->all->parts->functions, claim->subject);
		else if (claim->rule->kind == batch_kind())
			batches_take(m->all->parts->batches, claim->subject);
		else if (claim->rule->hand_over)
			lapse_start(&m->all->lapses, claim->subject, claim->fence);
		else
			recover(m->all, claim->subject, claim->rule->machine);
	}
	if (m->done) {
		m->done(m->context, code, m->janitor.reverted, m->janitor.held);
		free(m);
		return;
	}
	if (atomic_load(&m->gone)) {
		janitors_leave(m);
		return;
	}
	/*
	 * A sweep that ran out of its budget goes on at once after the claims it has looked at, which may be nobody's
	 * business here (another module's, a status that no definition knows any more). The last one waits its time.
	 */
	more = m->janitor.more && code == HX_OK;
	cursor = more ? m->janitor.cursor : 0;
	start_module_janitor(m, mono_add_ms(next, more ? 1 : m->every_ms));
	m->janitor.cursor = cursor;
	code = lane_submit_own(m->all->parts->lanes->lanes[0], &m->seat);
	ASSERT(code == HX_OK || code == HX_STOPPING); /* it ends with its lane, and not before */
}

static struct module_janitor *module_janitor_new(struct janitors *all, const char *module, int64_t every_ms)
{
	struct module_janitor *m = calloc(1, sizeof *m);

	if (m) {
		m->all = all;
		m->module = module;
		m->every_ms = every_ms;
		m->seat = (struct seat){.task = &m->janitor.task, .done = swept};
	}
	return m;
}

static enum hx_code janitors_enter(struct janitors *all, struct module_janitor *m)
{
	pthread_mutex_lock(&all->mutex);
	m->next = all->first;
	all->first = m;
	pthread_mutex_unlock(&all->mutex);
	start_module_janitor(m, (struct mono_time){0});
	return lane_submit_own(all->parts->lanes->lanes[0], &m->seat);
}

static enum hx_code janitors_add(struct janitors *all, const char *module, int64_t every_ms)
{
	struct module_janitor *m = module_janitor_new(all, module, every_ms);

	return m ? janitors_enter(all, m) : HX_NO_MEMORY;
}

/* ---- another configuration ---- */

static bool is_swept_here(const struct module_config *module)
{
	return module && module->janitor.declared && !module->janitor.external;
}

/* Is this janitor as the configuration wants it? */
static bool janitors_fits(const struct module_janitor *m, const struct config *config)
{
	const struct module_config *module = config_module(config, slice_str(m->module));

	return is_swept_here(module) && module->janitor.every_ms == m->every_ms;
}

static bool is_there(struct janitors *all, const struct module_config *module)
{
	bool there = false;

	LOCKED(&all->mutex);
	for (struct module_janitor *m = all->first; m && !there; m = m->next)
		there = m->module && strcmp(m->module, module->name) == 0 && !atomic_load(&m->gone) &&
			m->every_ms == module->janitor.every_ms;
	return there;
}

enum hx_code janitors_plan(struct janitors *janitors, const struct config *config, struct module_janitor **ret_fresh)
{
	struct module_janitor *fresh = NULL;

	for (size_t i = 0; i < config->modules_n; i++) {
		const struct module_config *module = &config->modules[i];
		struct module_janitor *m;

		if (!is_swept_here(module) || is_there(janitors, module))
			continue;
		m = module_janitor_new(janitors, module->name, module->janitor.every_ms);
		if (!m) {
			janitors_forget_plan(fresh);
			return HX_NO_MEMORY;
		}
		m->next = fresh;
		fresh = m;
	}
	*ret_fresh = fresh;
	return HX_OK;
}

void janitors_forget_plan(struct module_janitor *fresh)
{
	while (fresh) {
		struct module_janitor *next = fresh->next;

		free(fresh);
		fresh = next;
	}
}

void janitors_adopt(struct janitors *janitors, const struct config *config, struct module_janitor *fresh)
{
	atomic_store(&janitors->config, config);
	pthread_mutex_lock(&janitors->mutex);
	for (struct module_janitor *m = janitors->first; m; m = m->next)
		if (m->module && !janitors_fits(m, config))
			atomic_store(&m->gone, true);
	pthread_mutex_unlock(&janitors->mutex);
	for (struct module_janitor *m = fresh, *next; m; m = next) {
		next = m->next;
		(void)!janitors_enter(janitors,
				      m); /* refused only when the lane ends: then it is freed with the rest */
	}
}

static int64_t own_every_ms(int64_t lease_ms)
{
	int64_t quarter_ms = lease_ms / 4;

	return quarter_ms < JANITOR_OWN_EVERY_MS_MIN   ? JANITOR_OWN_EVERY_MS_MIN
	       : quarter_ms > JANITOR_OWN_EVERY_MS_MAX ? JANITOR_OWN_EVERY_MS_MAX
						       : quarter_ms;
}

enum hx_code janitors_start(struct janitors *janitors, const struct engine_parts *parts, int64_t sweep_ms)
{
	const struct config *config = parts->config;
	enum hx_code code;

	*janitors = (struct janitors){.parts = parts, .config = config, .lapses = {.parts = parts}};
	pthread_mutex_init(&janitors->mutex, NULL);
	code = janitors_add(janitors, /* module= */ NULL, sweep_ms ? sweep_ms : own_every_ms(config->lease_ms));
	for (size_t i = 0; i < config->modules_n && !code; i++)
		if (is_swept_here(&config->modules[i]))
			code = janitors_add(janitors, config->modules[i].name, config->modules[i].janitor.every_ms);
	return code;
}

void janitors_release(struct janitors *janitors)
{
	while (janitors->first) {
		struct module_janitor *m = janitors->first;

		janitors->first = m->next;
		free(m);
	}
	if (janitors->parts)
		pthread_mutex_destroy(&janitors->mutex);
}

enum hx_code janitors_sweep(struct janitors *janitors, struct slice module,
			    void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held),
			    void *context)
{
	const struct module_config *known = config_module(janitors->config, module);
	struct module_janitor *m;
	enum hx_code code;

	if (!known || !known->janitor.declared)
		return HX_NOT_FOUND;
	m = module_janitor_new(janitors, known->name, 0);
	if (!m)
		return HX_NO_MEMORY;
	m->done = done;
	m->context = context;
	start_module_janitor(m, (struct mono_time){0});
	/* A caller's sweep takes a caller's seat: there is no other bound on how many ask. */
	code = lane_submit(janitors->parts->lanes->lanes[0], &m->seat);
	if (code)
		free(m);
	return code;
}
