/* See unit_kinds.h. The life of these subjects: open ⇄ claimed, open → done → open, claimed → done. */
#include "support/unit_kinds.h"

#include "flow/entity.h"
#include "flow/job.h"

#define KIND 1
#define HOUR_MS 3600000

static const char open_status[] = "open", claimed[] = "claimed", done[] = "done";

static struct move move(const struct kind_args *args, const char *from, const char *to)
{
	return (struct move){args->subject, from, to};
}

static void create(struct unit *unit, const struct kind_args *args)
{
	subject_create(unit, &args->stamp, args->subject, KIND, open_status);
}

static void transition(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, done);

	subject_transition(unit, &args->stamp, &m, args->version);
}

static void reopen(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, done, open_status);

	subject_transition(unit, &args->stamp, &m, args->version);
}

static void claim(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, claimed);

	subject_claim(unit, &args->stamp, &m, args->version, args->lease_ms);
}

static void heartbeat(struct unit *unit, const struct kind_args *args)
{
	subject_heartbeat(unit, args->subject, args->fence, args->lease_ms);
}

static void release(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, open_status);

	subject_release(unit, &args->stamp, &m, args->fence, /* answered= */ true);
}

static void finish(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, done);

	subject_finish(unit, &args->stamp, &m, args->fence);
}

/* A finish with an after-effect: a job, with a subject of its own, made in the same unit. */
static void finish_effect(struct unit *unit, const struct kind_args *args)
{
	struct job_spec spec = {
		.subject = (INT64_C(1) << 50) + args->subject * 100000 + args->stamp.op,
		.workspace = slice_str("default"),
		.queue = JOB_QUEUE_AFTER_EFFECTS,
		.workflow = "billing",
		.action = "mail",
		.effect_key = slice_str("key"),
		.payload = slice_str("{}"),
	};

	finish(unit, args);
	job_insert(unit, &args->stamp, &spec);
}

/* What a step of an entity does when it claims. */
static void claim_noted(struct unit *unit, const struct kind_args *args)
{
	claim(unit, args);
	entity_note_claim(unit, args->subject, slice_str("close"), "open", slice_str("admin"), slice_str("null"));
}

static void revert(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, open_status);

	subject_revert(unit, &args->stamp, &m, args->fence);
}

static void take_over(struct unit *unit, const struct kind_args *args)
{
	subject_take_over(unit, &args->stamp, args->subject, claimed, args->fence, args->lease_ms);
}

static void hold(struct unit *unit, const struct kind_args *args)
{
	subject_hold(unit, args->subject, args->fence, /* if_past= */ false);
}

static void hold_past(struct unit *unit, const struct kind_args *args)
{
	subject_hold(unit, args->subject, args->fence, /* if_past= */ true);
}

static void answered(struct unit *unit, const struct kind_args *args)
{
	subject_answered(unit, args->subject, args->effort);
}

static void read(struct unit *unit, const struct kind_args *args)
{
	subject_read(unit, args->subject);
}

static void look_up(struct unit *unit, const struct kind_args *args)
{
	subject_look_up(unit, args->subject, args->rival_op);
}

/* Two subjects in one unit: the second verdict stands behind the first line, so it can be lost late. */
static void transition_two(struct unit *unit, const struct kind_args *args)
{
	struct move second = {args->other, open_status, done};

	transition(unit, args);
	subject_transition(unit, &args->stamp, &second, args->other_version);
}

/* The same in the other order: beside transition_two it would deadlock if locks were taken as lines come. */
static void transition_two_back(struct unit *unit, const struct kind_args *args)
{
	struct move first = {args->other, open_status, done};

	subject_transition(unit, &args->stamp, &first, args->other_version);
	transition(unit, args);
}

const struct unit_kind unit_kinds[] = {
	{"create", create, /* touches_two= */ false},
	{"transition", transition, false},
	{"reopen", reopen, false},
	{"claim", claim, false},
	{"heartbeat", heartbeat, false},
	{"release", release, false},
	{"finish", finish, false},
	{"finish_effect", finish_effect, false},
	{"claim_noted", claim_noted, false},
	{"revert", revert, false},
	{"take_over", take_over, false},
	{"hold", hold, false},
	{"hold_past", hold_past, false},
	{"answered", answered, false},
	{"read", read, false},
	{"look_up", look_up, false},
	{"transition_two", transition_two, true},
	{"transition_two_back", transition_two_back, true},
};
const size_t unit_kinds_n = sizeof unit_kinds / sizeof *unit_kinds;

/* The units that lead to each fixture, and where it then stands. */
static const struct {
	const char *name;
	int64_t version, fence, effort;
	void (*steps[5])(struct unit *, const struct kind_args *);
	int64_t lease_ms;
} fixtures[FIXTURE_COUNT] = {
	[FIXTURE_ABSENT] = {"absent", 0, 0, 0, {NULL}, 0},
	[FIXTURE_OPEN] = {"open", 1, 0, 0, {create}, 0},
	[FIXTURE_CLAIMED] = {"claimed", 2, 1, 0, {create, claim}, HOUR_MS},
	[FIXTURE_PAST] = {"past its time", 2, 1, 0, {create, claim}, -HOUR_MS},
	[FIXTURE_TAKEN_OVER] = {"taken over", 4, 2, 1, {create, claim, release, claim}, HOUR_MS},
};

const char *fixture_name(enum fixture fixture)
{
	return fixtures[fixture].name;
}

int64_t fixture_version(enum fixture fixture)
{
	return fixtures[fixture].version;
}

int64_t fixture_fence(enum fixture fixture)
{
	return fixtures[fixture].fence;
}

int64_t fixture_effort(enum fixture fixture)
{
	return fixtures[fixture].effort;
}

bool fixture_step(enum fixture fixture, unsigned step, int64_t subject, struct unit *unit)
{
	struct kind_args args = {
		.subject = subject,
		.stamp = {.op = step + 1, .at = {1000 + step}, .node = "fixture"},
		.version = step, /* every step raises it by one */
		.fence = 1,
		.lease_ms = fixtures[fixture].lease_ms,
	};

	if (!fixtures[fixture].steps[step])
		return false;
	fixtures[fixture].steps[step](unit, &args);
	return true;
}
