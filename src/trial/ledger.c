/*
 * What services do in a trial, and the ledger of what has happened outside: to whom, by which step, under which key.
 *
 * A key that stands there already is answered from memory by a service that dedupes; by one that does not it happens again, and
 * that is where most stories end. What is still to happen stands in a list of its own, until it lands.
 */
#include "sim/world.h"
#include "trial/parts.h"

static const enum trial_may may_of[SIM_ACTS_N] = {
	[SIM_ACT_OK] = MAY_DONE,           [SIM_ACT_FAILED] = MAY_FAILED,
	[SIM_ACT_INVALID] = MAY_REJECTED,  [SIM_ACT_UNKNOWN_NOT] = MAY_TIMEOUT,
	[SIM_ACT_LATE] = MAY_LATE,         [SIM_ACT_UNKNOWN_DONE] = MAY_TIMEOUT_AFTER,
	[SIM_ACT_LIED] = MAY_FAILED_AFTER,
};

enum trial_may trial_may_of(enum sim_act how)
{
	return may_of[how];
}

/* ---- whose call it is ---- */

struct key_parts {
	enum trial_role role;
	int64_t subject;
	struct slice step; /* empty: the definition's own */
};

static struct slice up_to(struct slice s, char c, struct slice *ret_rest)
{
	const char *at = memchr(s.p, c, s.n);
	size_t n = at ? (size_t)(at - s.p) : s.n;

	*ret_rest = at ? slice_of(at + 1, s.n - n - 1) : slice_of(s.p + s.n, 0);
	return slice_of(s.p, n);
}

static bool has(struct slice s, const char *word)
{
	return memmem(s.p, s.n, word, strlen(word)) != NULL;
}

/* flow/call_key.h has the forms. */
static bool read_key(struct slice key, struct key_parts *ret)
{
	struct slice rest, id, word;
	int64_t n = 0;

	*ret = (struct key_parts){.role = ROLE_ACTION};
	if (key.n > 4 && memcmp(key.p, "run_", 4) == 0) {
		id = up_to(key, '/', &rest);
		ret->step = up_to(rest, '/', &rest);
		if (!id_parse("run", id, &ret->subject))
			return false;
		word = up_to(rest, '/', &rest);
		if (slice_is(ret->step, "failed") && rest.n)
			*ret = (struct key_parts){ROLE_AFTER, ret->subject, slice_of("", 0)};
		else if (slice_is(word, "undo"))
			ret->role = ROLE_UNDO;
	} else if (key.n > 4 && memcmp(key.p, "ent_", 4) == 0) {
		id = up_to(key, '-', &rest);
		(void)up_to(rest, '-', &rest); /* the effort */
		ret->step = up_to(rest, '/', &rest);
		if (!id_parse("ent", id, &ret->subject))
			return false;
		if (has(key, "/after/"))
			ret->role = ROLE_AFTER;
	} else if (key.n > 6 && memcmp(key.p, "batch_", 6) == 0) {
		(void)up_to(key, '/', &rest);
		word = up_to(rest, '/', &rest);
		for (size_t i = 0; i < word.n && word.p[i] >= '0' && word.p[i] <= '9'; i++)
			n = 10 * n + (word.p[i] - '0');
		*ret = (struct key_parts){ROLE_ACTION, n + 1, slice_str(TRIAL_ITEM)};
		if (slice_is(word, "done"))
			*ret = (struct key_parts){ROLE_AFTER, 0, slice_of("", 0)};
		else if (has(key, "/cleanup/"))
			ret->role = ROLE_UNDO;
		else if (has(key, "/void/"))
			ret->role = ROLE_VOID;
	} else {
		return false;
	}
	if (has(key, "/probe/") || has(key, "/validation/"))
		ret->role = ROLE_ASK;
	return true;
}

bool trial_key_subject(struct slice key, int64_t *ret_subject)
{
	struct key_parts parts;

	if (!read_key(key, &parts))
		return false;
	*ret_subject = parts.subject;
	return true;
}

struct trial_caller *trial_caller_of(struct trial *t, const struct act_call *call, int64_t *ret_subject)
{
	struct trial_caller *found = NULL;
	const struct definition *of = t->machine->of;
	struct key_parts parts;

	if (!read_key(call->key, &parts))
		return NULL;
	*ret_subject = parts.subject;
	if (parts.subject < TRIAL_SUBJECT + (int64_t)t->members_n && !t->machine->batch)
		of = TRIAL_MEMBER_AT(t, parts.subject)->machine->of;
	for (size_t i = 0; i < t->callers_n; i++) {
		struct trial_caller *c = &t->callers[i];

		if (!c->service || c->role != parts.role || !slice_is(parts.step, c->step) ||
		    (call->action && c->service->action != call->action))
			continue;
		if (c->of == of)
			return c;
		found = found ? found : c;
	}
	return found;
}

void trial_reached(struct trial *t, const struct definition *of, const char *step)
{
	for (size_t i = 0; i < t->callers_n; i++)
		if (!t->callers[i].service && t->callers[i].of == of && strcmp(t->callers[i].step, step) == 0)
			t->callers[i].reached = true;
}

/* ---- the ledger ---- */

static const struct trial_effect *find(const struct trial_effect *effects, unsigned n, uint64_t key)
{
	for (unsigned i = 0; i < n; i++)
		if (effects[i].key == key)
			return &effects[i];
	return NULL;
}

static const struct trial_effect *find_role(const struct sim *sim, int64_t subject, const char *step,
					    enum trial_role role)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);

	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *c = &t->callers[ledger->effects[i].caller];

		if (ledger->effects[i].subject == subject && c->role == role && strcmp(c->step, step) == 0)
			return &ledger->effects[i];
	}
	return NULL;
}

/* A compensation whose step stands before one that was undone already, of those that were done. */
static void check_reverse(struct sim *sim, const struct trial_effect *effect, const struct trial_caller *c)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);

	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *other = &t->callers[ledger->effects[i].caller];

		if (ledger->effects[i].subject == effect->subject && other->role == ROLE_UNDO && other->of == c->of &&
		    other->order < c->order)
			trial_break(sim, RULE_REVERSE, c, "step %s was undone after step %s, which was done before it",
				    c->step, other->step);
	}
}

/* A key that was voided stands in the ledger as its neighbour: nothing happens under it any more. */
#define VOIDED(key) ((key) + 1)

static bool is_void(const struct sim *sim, uint64_t key)
{
	return find(trial_ledger(sim)->effects, trial_ledger(sim)->n, VOIDED(key)) != NULL;
}

static void apply(struct sim *sim, const struct trial_effect *effect)
{
	struct trial_ledger *ledger = trial_ledger(sim);
	struct trial *t = trial_of(sim);
	const struct trial_caller *c = &t->callers[effect->caller];
	const struct action *action = c->service->action;

	t->rows_changed = true;
	if (c->role == ROLE_ACTION && is_void(sim, effect->key))
		return;
	if (find(ledger->effects, ledger->n, effect->key)) {
		if (!c->service->dedupes && !c->service->repeats) {
			t->again[c->service - t->services]++;
			trial_break(sim, RULE_ONCE, c, "%s has happened twice for one decision, step %s", action->name,
				    c->step);
		}
		return;
	}
	if (c->role == ROLE_ACTION && c->run_step && find_role(sim, effect->subject, c->step, ROLE_UNDO))
		trial_break(sim, RULE_UNDONE, c, "%s has happened after step %s was undone", action->name, c->step);
	if (c->role == ROLE_UNDO)
		check_reverse(sim, effect, c);
	if (ledger->n == TRIAL_EFFECTS_MAX) {
		sim->full = true;
		return;
	}
	ledger->effects[ledger->n++] = *effect;
}

static void put_off(struct sim *sim, const struct trial_effect *effect)
{
	struct trial_ledger *ledger = trial_ledger(sim);

	if (ledger->late_n == TRIAL_LATE_MAX)
		sim->full = true;
	else
		ledger->late[ledger->late_n++] = *effect;
}

unsigned trial_late_n(const struct sim *sim)
{
	return trial_ledger(sim)->late_n;
}

void trial_land(struct sim *sim, unsigned which)
{
	struct trial_ledger *ledger = trial_ledger(sim);
	struct trial_effect effect = ledger->late[which];

	memmove(&ledger->late[which], &ledger->late[which + 1], (ledger->late_n - which - 1) * sizeof effect);
	ledger->late_n--;
	memset(&ledger->late[ledger->late_n], 0, sizeof effect);
	apply(sim, &effect);
}

/* ---- how calls end ---- */

static struct slice key_before(struct slice key, const char *word)
{
	const char *at = memmem(key.p, key.n, word, strlen(word));

	return at ? slice_of(key.p, (size_t)(at - key.p)) : key;
}

static bool effect_of(struct sim *sim, const struct act_call *call, struct trial_effect *ret,
		      struct trial_caller **ret_c)
{
	struct trial *t = trial_of(sim);
	int64_t subject;
	struct trial_caller *c = trial_caller_of(t, call, &subject);

	*ret_c = c;
	if (!c)
		return false;
	*ret = (struct trial_effect){
		.key = c->role == ROLE_VOID ? VOIDED(world_key(key_before(call->key, "/void/"))) : world_key(call->key),
		.subject = subject,
		.caller = (unsigned char)(c - t->callers),
	};
	return true;
}

bool trial_allows(const struct sim *sim, const struct act_call *call, enum sim_act how)
{
	const struct sim_bounds *left = &sim->state.left;
	int64_t subject;
	const struct trial_caller *c = trial_caller_of(trial_of(sim), call, &subject);
	bool fails = how == SIM_ACT_FAILED || how == SIM_ACT_INVALID || how == SIM_ACT_LIED;

	if (how == SIM_ACT_UNSETTLED)
		return false;
	if (!c)
		return how == SIM_ACT_OK;
	if (!(c->service->may & 1u << may_of[how]))
		return false;
	/* Who dedupes says of what it has done that it was done; or it cannot be reached. */
	if (c->service->dedupes && (how == SIM_ACT_INVALID || how == SIM_ACT_LIED) &&
	    find(trial_ledger(sim)->effects, trial_ledger(sim)->n, world_key(call->key)))
		return false;
	/* Of a service that is never done, nothing that it does is a mishap. */
	if (how == SIM_ACT_OK || !(c->service->may & 1u << MAY_DONE))
		return true;
	return left->mishaps && (fails ? left->failures : left->lost_answers);
}

static void use_up(struct sim *sim, const struct trial_service *service, enum sim_act how)
{
	if (how == SIM_ACT_OK || !(service->may & 1u << MAY_DONE))
		return;
	sim->state.left.mishaps--;
	if (how == SIM_ACT_FAILED || how == SIM_ACT_INVALID || how == SIM_ACT_LIED)
		sim->state.left.failures--;
	else
		sim->state.left.lost_answers--;
}

/* Takes what is still to happen under this key off the list. */
static void take_back(struct sim *sim, uint64_t key)
{
	struct trial_ledger *ledger = trial_ledger(sim);
	unsigned n = 0;

	for (unsigned i = 0; i < ledger->late_n; i++)
		if (ledger->late[i].key != key)
			ledger->late[n++] = ledger->late[i];
	memset(&ledger->late[n], 0, (ledger->late_n - n) * sizeof *ledger->late);
	ledger->late_n = (unsigned char)n;
}

/* An honest one says not_done only of what will not be done any more. */
static struct slice probe_says(struct sim *sim, const struct act_call *call, const struct trial_service *service)
{
	struct trial_ledger *ledger = trial_ledger(sim);
	uint64_t key = world_key(key_before(call->key, "/probe/"));
	struct trial_effect *late = (struct trial_effect *)(uintptr_t)find(ledger->late, ledger->late_n, key);

	if (service->voids)
		take_back(sim, key);
	else if (late && !service->guesses && late->asked++ == 0)
		return slice_str("{\"outcome\":\"unknown\"}");
	else if (late && !service->guesses) /* nothing is under way for ever */
		trial_land(sim, (unsigned)(late - ledger->late));
	if (find(ledger->effects, ledger->n, key))
		return slice_str("{\"outcome\":\"done\"}");
	return slice_str("{\"outcome\":\"not_done\"}");
}

static struct answer answer_of(const struct act_call *call, enum sim_act how, struct slice returns)
{
	struct answer answer = {.kind = ANSWER_ACT, .outcome = ACT_UNKNOWN, .output = slice_str("no answer")};

	if (how == SIM_ACT_OK) {
		answer.outcome = ACT_OK;
		answer.output = returns;
	} else if (how == SIM_ACT_INVALID) {
		answer.outcome = ACT_INVALID;
		answer.output = slice_str("{\"is_invalid\":true}");
	} else if (how == SIM_ACT_FAILED || (how == SIM_ACT_LIED && !call->unknown_on_5xx)) {
		answer.outcome = ACT_FAILED;
		answer.output = slice_str("it failed");
	}
	return answer;
}

struct answer trial_end(struct sim *sim, const struct act_call *call, enum sim_act how)
{
	struct trial_effect effect;
	struct trial_caller *c;

	if (!effect_of(sim, call, &effect, &c))
		return answer_of(call, SIM_ACT_OK, slice_str("null"));
	c->seen |= 1u << may_of[how];
	c->reached = true;
	use_up(sim, c->service, how);
	if (c->role == ROLE_ASK)
		return answer_of(call, how,
				 has(call->key, "/probe/") ? probe_says(sim, call, c->service) : c->service->returns);
	if (how == SIM_ACT_OK || how == SIM_ACT_UNKNOWN_DONE || how == SIM_ACT_LIED)
		apply(sim, &effect);
	if (how == SIM_ACT_LATE)
		put_off(sim, &effect);
	if (how == SIM_ACT_INVALID && c->service->dedupes) /* that is the answer to its key from now on */
		take_back(sim, effect.key);
	if (c->role == ROLE_VOID && find(trial_ledger(sim)->effects, trial_ledger(sim)->n, effect.key))
		take_back(sim, effect.key - 1);
	if (how == SIM_ACT_OK && c->role == ROLE_ACTION && is_void(sim, effect.key))
		how = SIM_ACT_INVALID;
	return answer_of(call, how, c->service->returns);
}

void trial_cut(struct sim *sim, const struct act_call *call, enum sim_cut how)
{
	static const enum trial_may seen[CUTS_N] = {MAY_TIMEOUT, MAY_TIMEOUT_AFTER, MAY_LATE};
	struct trial_effect effect;
	struct trial_caller *c;

	if (!effect_of(sim, call, &effect, &c))
		return;
	c->reached = true;
	if (c->role == ROLE_ASK)
		return;
	if (c->service->may & 1u << seen[how])
		c->seen |= 1u << seen[how];
	if (how == CUT_DONE)
		apply(sim, &effect);
	if (how == CUT_LATE && c->service->may & 1u << MAY_LATE)
		put_off(sim, &effect);
}
