/* See runs.h. */
#include "engine/runs.h"

#include "base/hash.h"
#include "base/id.h"
#include "engine/engine.h"

#define RUN_BYTES_MAX (96u << 20)
#define RUNS_SLICE 128

struct runs {
	struct feeder feeder;
	struct run_policy policy;
};

struct drive {
	struct fed fed;
	struct run_drive run;
	struct runs *runs;
	bool told_over; /* that it was taken over */
	bool makes;     /* its run, which is not there yet */
	/* Then: */
	struct run_making making; /* .ended NULL: whoever wants it has been told, or it was there */
	struct run_spec spec;
	struct run_watch *watch; /* NULL: nobody waits */
};

static struct slice left_runs(const void *context)
{
	const struct runs *runs = context;

	return definitions_left_runs(runs->feeder.parts->definitions);
}

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	const struct runs *runs = context;
	const struct run_machine *machine;

	if (version == RUN_NEWEST) {
		machine = definitions_run(runs->feeder.parts->definitions, workflow);
		return machine ? machine : definitions_function(runs->feeder.parts->definitions, workflow);
	}
	return definitions_run_version(runs->feeder.parts->definitions, workflow, version);
}

static bool may_be_function(const void *context, struct slice name)
{
	const struct runs *runs = context;

	return definitions_may_be_function(runs->feeder.parts->definitions, name);
}

/* ---- what came of it ---- */

/* Where it stands, or which step it undoes. */
static const char *step_name(const struct run_drive *run)
{
	const struct run_definition *definition = run->row.definition;
	size_t position = run->row.undo >= 0 ? (size_t)run->row.undo : run->row.position;

	return definition && position < definition->steps_n ? definition->steps[position].name : "";
}

static bool is_held_unknown(const struct run_drive *run)
{
	return run->held && slice_is(run->row.step_status, RUN_STEP_UNKNOWN);
}

static void runs_count(struct engine_metrics *metrics, const struct run_drive *run, enum hx_code code)
{
	atomic_fetch_add(&metrics->runs_driven, code == HX_OK);
	atomic_fetch_add(&metrics->runs_fenced, run->fenced || code == HX_STALE_FENCE);
	atomic_fetch_add(&metrics->runs_held, run->held);
	atomic_fetch_add(&metrics->runs_in_line, run->in_line);
	atomic_fetch_add(&metrics->runs_unknown, is_held_unknown(run));
	if (run->brought_to_end)
		tally_add(&metrics->runs_ended, run->row.machine->definition->name, run->row.status);
}

static void tell_unknown(const struct drive *drive, const char *id)
{
	struct runs *runs = drive->runs;

	if (!feeder_may_tell(&runs->feeder))
		return;
	if (drive->run.missing_function)
		log_warn(runs->feeder.parts->log, "a run is left to a program that has its function",
			 log_text("id", id), log_slice("workflow", drive->run.missing_workflow),
			 log_text("function", drive->run.missing_function));
	else
		log_warn(runs->feeder.parts->log, "a run's definition is not known here: it is looked for",
			 log_text("id", id), log_slice("workflow", drive->run.missing_workflow),
			 log_int("version", drive->run.missing_version));
}

/* As soon as the move that takes the run is durable: what it was taken over for may last for hours. */
static void tell_over(struct drive *drive)
{
	const struct run_drive *run = &drive->run;

	if (!run->took_over || drive->told_over)
		return;
	drive->told_over = true;
	atomic_fetch_add(&drive->runs->feeder.parts->metrics->runs_taken_over, 1);
	log_warn(drive->runs->feeder.parts->log, "a run was taken over: its holder's time was over",
		 log_text("id", id_text("run", run->subject).text), log_text("step", run->over ? run->over->name : ""));
}

static void tell_held(const struct run_drive *run, struct log *log, const char *id)
{
	const char *words = !is_held_unknown(run) ? "a compensation has failed: it waits for a person to retry it"
			    : run->row.undo >= 0  ? "a compensation's outcome is unknown: it is held for a person"
						  : "a step's outcome is unknown: it is held for a person";

	log_warn(log, words, log_text("id", id), log_text("step", step_name(run)), log_slice("error", run->row.error));
}

/* Losing a race for a run, and being stopped, is not worth a line. */
static void runs_tell(const struct drive *drive, enum hx_code code)
{
	const struct run_drive *run = &drive->run;
	struct log *log = drive->runs->feeder.parts->log;
	char id[ID_TEXT_BYTES];

	runs_count(drive->runs->feeder.parts->metrics, run, code);
	id_format("run", run->subject, id);
	if (run->brought_to_end && strcmp(run->row.status, RUN_FAILED) == 0)
		log_warn(log, "a run has failed: it waits for a person to retry or cancel it", log_text("id", id),
			 log_text("workflow", run->row.machine->definition->name), log_text("step", step_name(run)),
			 log_slice("error", run->row.error));
	if (run->fails && code == HX_OK)
		log_warn(log, "a run has failed: it is cancelled, and what it has done is undone", log_text("id", id),
			 log_text("workflow", run->row.machine->definition->name), log_text("step", step_name(run)),
			 log_slice("error", run->row.error));
	if (run->fenced || code == HX_STALE_FENCE)
		log_warn(log, "a run's claim was overrun: what this node still had in mind was not written",
			 log_text("id", id), log_text("step", step_name(run)));
	else if (run->held)
		tell_held(run, log, id);
	else if (code == HX_CONFIG_ERROR)
		tell_unknown(drive, id);
	else if (code != HX_OK && code != HX_CLAIM_FAILED && code != HX_STOPPING)
		log_warn(log, "a run was not driven on", log_text("id", id), log_text("step", step_name(run)),
			 log_text("code", hx_code_name(code)));
}

/* ---- driving ---- */

static void tell_maker(struct drive *drive, enum hx_code code)
{
	struct run_making making = drive->making;

	drive->making.ended = NULL;
	if (making.ended)
		making.ended(making.context, code ? NULL : drive, code);
}

/* It has an id: from now on nobody else here drives it. */
static void take_made(struct drive *drive)
{
	struct runs *runs = drive->runs;

	atomic_fetch_add(&runs->feeder.parts->metrics->runs_created, 1);
	if (feeder_name(&runs->feeder, drive->fed.subject, drive->run.subject))
		drive->fed.subject = drive->run.subject;
	drive->makes = false;
}

void runs_watch(struct run_watch *watch)
{
	if (watch->drive)
		watch->drive->watch = watch;
}

void runs_unwatch(struct run_watch *watch)
{
	if (watch->drive)
		watch->drive->watch = NULL;
	watch->drive = NULL;
}

static void tell_watch(struct drive *drive)
{
	struct run_watch *watch = drive->watch;
	struct run_row row;

	if (!watch || !run_drive_completed(&drive->run, &row))
		return;
	runs_unwatch(watch);
	watch->completed(watch, &row);
}

static void drive_committed(struct seat *seat)
{
	struct drive *drive = (struct drive *)seat;
	const struct run_drive *run = &drive->run;

	if (drive->makes && run->made)
		take_made(drive);
	if (run->made || run->task.at == DRIVE_FINDING)
		tell_maker(drive, run->made ? HX_OK : HX_OUTCOME_UNKNOWN);
	tell_watch(drive);
	tell_over(drive);
}

static void driven(struct seat *seat, enum hx_code code)
{
	struct drive *drive = (struct drive *)seat;

	tell_maker(drive, code);
	if (drive->watch)
		runs_unwatch(drive->watch);
	if (!drive->makes) /* else there is none */
		runs_tell(drive, code);
	fed_end(&drive->fed, drive->makes ? 0 : feeder_rest_ms(code));
}

static struct drive *drive_new(struct runs *runs, int64_t subject)
{
	struct drive *drive = fed_new(&runs->feeder, subject, sizeof *drive, RUN_BYTES_MAX);

	if (!drive)
		return NULL;
	drive->runs = runs;
	drive->fed.seat.committed = drive_committed;
	return drive;
}

static bool runs_begin(void *context, struct due due)
{
	struct runs *runs = context;
	struct drive *drive = drive_new(runs, due.subject);

	if (!drive)
		return false;
	drive->fed.beside = due.beside;
	run_drive_init(&drive->run, due.subject, &runs->policy, &drive->fed.arena);
	return fed_begin(&drive->fed, &drive->run.task, driven);
}

static struct slice copy(struct arena *arena, struct slice text)
{
	return text.p ? arena_copy(arena, text) : text;
}

/* A run that was created just now has no steps and no job: these are all its texts. */
static struct run_row copy_row(struct arena *arena, const struct run_row *row)
{
	struct run_row copied = *row;

	ASSERT(!row->done && !row->job);
	copied.workspace = copy(arena, row->workspace);
	copied.requester = copy(arena, row->requester);
	copied.key = copy(arena, row->key);
	copied.trace = copy(arena, row->trace);
	copied.input = copy(arena, row->input);
	copied.attributes = copy(arena, row->attributes);
	return copied;
}

static struct drive *drive_created(struct runs *runs, const struct run_row *row)
{
	struct drive *drive;
	struct run_row copied;

	if (!feeder_take(&runs->feeder, row->subject, unit_tenant(row->workspace)))
		return NULL;
	drive = drive_new(runs, row->subject);
	if (drive) {
		copied = copy_row(&drive->fed.arena, row);
		run_drive_init_created(&drive->run, &copied, &runs->policy, &drive->fed.arena);
		if (!drive->fed.arena.failed)
			return drive;
	}
	fed_free((struct fed *)drive);
	feeder_ended(&runs->feeder, row->subject, /* rest_ms= */ 0);
	return NULL;
}

static struct run_spec copy_spec(struct arena *arena, const struct run_spec *spec)
{
	struct run_spec copied = *spec;

	copied.workspace = copy(arena, spec->workspace);
	copied.requester = copy(arena, spec->requester);
	copied.key = copy(arena, spec->key);
	copied.traceparent = copy(arena, spec->traceparent);
	copied.input = copy(arena, spec->input);
	copied.attributes = copy(arena, spec->attributes);
	return copied;
}

/* Under a name until it has an id: no two are at one place at the same time. */
static struct drive *drive_making(struct runs *runs, const struct run_making *making)
{
	struct drive *drive = drive_new(runs, /* subject= */ 0);

	if (!drive)
		return NULL;
	drive->fed.subject = -(int64_t)(uintptr_t)drive;
	drive->fed.beside = (int64_t)making->hash;
	/* Somebody waits for it: not for longer than for any other answer of the store. */
	if (runs->feeder.parts->config->store_timeout_ms)
		drive->fed.seat.deadline = mono_add_ms(clock_mono(runs->feeder.parts->clock),
						       runs->feeder.parts->config->store_timeout_ms);
	drive->making = *making;
	drive->makes = true;
	drive->spec = copy_spec(&drive->fed.arena, making->spec);
	run_drive_init_making(&drive->run, making->single, &drive->spec, &runs->policy, &drive->fed.arena);
	if (!drive->fed.arena.failed &&
	    feeder_take(&runs->feeder, drive->fed.subject, unit_tenant(drive->spec.workspace)))
		return drive;
	fed_free(&drive->fed);
	return NULL;
}

/*
 * Is it likely that its first move goes along? Any other run is worked on in its own lane, where those who ask for it wait for what it
 * is doing.
 */
static bool begins_at_once(const struct run_definition *definition)
{
	const struct run_step *first = definition->is_function ? NULL : &definition->steps[0];

	return first && first->type == RUN_TASK && action_kind_by(first->action->kind) == BY_PORT &&
	       !limits_are_set(&definition->limits) && !limits_are_set(&first->action->limits);
}

bool runs_make(struct runs *runs, const struct run_making *making)
{
	bool makes = making->spec->due_in_ms && begins_at_once(making->spec->machine->definition);
	struct drive *drive = makes ? drive_making(runs, making) : NULL;
	int64_t name = drive ? drive->fed.subject : 0;

	if (!drive)
		return false;
	if (fed_begin(&drive->fed, &drive->run.task, driven))
		return true;
	feeder_ended(&runs->feeder, name, /* rest_ms= */ 0);
	return false;
}

struct drive *runs_created(struct runs *runs, const struct run_spec *spec, const struct run_row *row)
{
	atomic_fetch_add(&runs->feeder.parts->metrics->runs_created, 1);
	return spec->due_in_ms ? drive_created(runs, row) : NULL;
}

void runs_drive(struct drive *drive)
{
	struct runs *runs = drive ? drive->runs : NULL;
	int64_t subject = drive ? drive->run.subject : 0;

	if (drive && !fed_begin(&drive->fed, &drive->run.task, driven))
		feeder_ended(&runs->feeder, subject, /* rest_ms= */ 0);
}

void runs_take_over(struct runs *runs, int64_t subject)
{
	feeder_offer(&runs->feeder, subject);
}

uint64_t runs_hash(const struct run_spec *spec)
{
	uint64_t hash = hash_bytes(1, spec->workspace.p, spec->workspace.n);

	return spec->key.p ? hash_bytes(hash, spec->key.p, spec->key.n) : (uint64_t)(uintptr_t)spec;
}

int64_t runs_head_start_ms(struct runs *runs, struct slice workspace)
{
	return feeder_has_room(&runs->feeder, unit_tenant(workspace)) ? RUNS_HEAD_START_MS : 0;
}

/* ---- showing ---- */

enum hx_code runs_take(const struct runs *runs, const struct unit_result *result, struct arena *arena,
		       struct run_row *ret_row)
{
	enum hx_code code = run_row_take(result, machine_of, runs, arena, ret_row);

	if (code != HX_NOT_FOUND && code != HX_TOO_LARGE && ret_row->expired)
		return HX_RUN_EXPIRED;
	return code == HX_CONFIG_ERROR ? HX_BUSY : code;
}

const char *runs_detail(enum hx_code code)
{
	if (code == HX_NOT_FOUND)
		return "there is no such run";
	return code == HX_BUSY ? "this node does not know the definition of this run yet" : NULL;
}

static void runs_prepare(void *part, struct engine_parts *parts)
{
	struct runs *runs = part;

	runs->policy = (struct run_policy){parts->config->lease_ms, machine_of, runs, may_be_function,
					   &runs->feeder.closed};
	parts->runs = runs;
	parts->run_policy = &runs->policy;
}

const struct feed runs_feed = {
	&run_due_source,        RUNS_DRIVEN_MAX, RUNS_SLICE, runs_begin, left_runs, .size = sizeof(struct runs),
	.prepare = runs_prepare};
