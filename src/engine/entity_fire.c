/* See entity_fire.h. */
#include "engine/entity_fire.h"

#include "engine/definitions.h"

#define STEP_BYTES_MAX (160u << 20)

static struct entity_fire *of_ticket(struct entry_ticket *ticket)
{
	return CONTAINER_OF(ticket, struct entity_fire, ticket);
}

static struct entity_fire *of_seat(struct seat *seat)
{
	return CONTAINER_OF(seat, struct entity_fire, seat);
}

/* ---- the end ---- */

/* What an operator has to know of, whatever the caller is told. */
static void entity_fire_tell(const struct entity_fire *fire, const char *message)
{
	log_warn(engine_parts(fire->engine)->log, message, log_text("workflow", fire->rq.ref.machine->workflow->name),
		 log_slice("id", fire->step.name), log_slice("step", fire->rq.step_key),
		 log_int("fence", fire->step.fence), log_slice("detail", fire->step.output));
}

static void entity_fire_done(struct entity_fire *fire)
{
	struct engine_metrics *metrics = engine_parts(fire->engine)->metrics;

	atomic_fetch_add(&metrics->steps_ok, fire->code == HX_OK);
	if (fire->step.overrun)
		entity_fire_tell(fire, "a claim was overrun: what its owner still wanted to write changed nothing");
	if (fire->code == HX_OUTCOME_UNKNOWN) {
		atomic_fetch_add(&metrics->unknown_outcomes, 1);
		entity_fire_tell(fire, "the outcome of a step is unknown");
	}
	fire->done(fire, fire->code);
}

static void released(struct entry_ticket *ticket)
{
	entity_fire_done(of_ticket(ticket));
}

static void end_fire(struct entity_fire *fire, enum hx_code code)
{
	fire->code = code;
	entry_lock_release(&fire->ticket);
}

static void step_done(struct seat *seat, enum hx_code code)
{
	end_fire(of_seat(seat), code);
}

/* ---- the start ---- */

static void entity_fire_submit(struct entity_fire *fire)
{
	const struct entity_ref *ref = &fire->rq.ref;
	enum hx_code code = engine_submit(
		fire->engine, entity_hash(ref->workspace, ref->machine->workflow->name, ref->name), &fire->seat);

	if (code)
		end_fire(fire, code);
}

static void taken(struct entry_ticket *ticket, enum hx_code code)
{
	struct entity_fire *fire = of_ticket(ticket);
	struct engine_metrics *metrics = engine_parts(fire->engine)->metrics;

	if (code == HX_ENTRY_LOCKED) {
		atomic_fetch_add(&metrics->entry_locked, 1);
		fire->step.output = slice_str("this is being processed, please do not submit it again");
		end_fire(fire, HX_ENTRY_LOCKED);
		return;
	}
	atomic_fetch_add(&metrics->entry_lock_unavailable, code != HX_OK);
	entity_fire_submit(fire);
}

/* Before the row is read its status is not known: the longest lock of the steps of this name. */
static int64_t entry_lock_ms(const struct workflow *w, struct slice step_key, struct slice requester)
{
	int64_t ms = 0;

	for (size_t i = 0; i < w->steps_n; i++) {
		const struct step_view *view = workflow_view(w, &w->steps[i], requester);

		if (slice_is(step_key, w->steps[i].step_key) && view->entry_lock_ms > ms)
			ms = view->entry_lock_ms;
	}
	return ms;
}

void entity_fire_start(struct entity_fire *fire, struct engine *engine)
{
	const struct entity_ref *ref = &fire->rq.ref;
	const struct workflow *workflow = ref->machine->workflow;
	struct entry_key key = {ref->workspace, slice_str(workflow->name), ref->name, fire->rq.step_key};
	int64_t lock_ms = fire->rq.mode == STEP_FIRE ? entry_lock_ms(workflow, fire->rq.step_key, fire->rq.requester)
						     : 0;

	fire->engine = engine;
	fire->rq.lease_ms = engine_lease_ms(engine, ref->machine);
	fire->rq.workflow_of = definitions_entity_version;
	fire->rq.context = engine_parts(engine)->definitions;
	fire->seat = (struct seat){.task = &fire->step.task, .done = step_done};
	fire->ticket.taken = taken;
	fire->ticket.released = released;
	arena_init(&fire->arena, STEP_BYTES_MAX);
	entity_step_init(&fire->step, &fire->rq, &fire->arena);
	atomic_fetch_add(&engine_parts(engine)->metrics->steps_fired, 1);
	if (lock_ms)
		entry_lock_take(engine_parts(engine)->entry_locks, &fire->ticket, &key, lock_ms);
	else
		entity_fire_submit(fire);
}

void entity_fire_release(struct entity_fire *fire)
{
	arena_release(&fire->arena);
}
