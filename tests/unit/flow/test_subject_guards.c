/* Every guard of subject.c that the simulator is not asked about, and the one of a creation: see guards.h. */
#include "unit/flow/guards.h"

#include "flow/entity.h"

#define VERSION 4
#define FENCE 7
#define EFFORT_NOW 6

#define SUBJECT(status, owner, until)                                                                                  \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, effort, owner, until, updated_at, seq, head)"   \
	" VALUES (1, 3, '" status "', 4, 0, 7, 6, " owner ", " until ", 1000000, 3, x'00')"
#define FREE SUBJECT("open", "NULL", "NULL")
#define CLAIMED SUBJECT("busy", "'here'", "1000500")
#define LAPSED SUBJECT("busy", "'here'", "1000000")
#define ENTITY                                                                                                         \
	FREE "; INSERT INTO hx_entity (subject, workspace, workflow, name, data)"                                      \
	     " VALUES (1, 'default', 'invoice', 'inv-1', '{}')"
#define CHILD                                                                                                           \
	CLAIMED "; INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at)" \
		" VALUES (1, 'default', 'pack', 1, 'system', '{}', 1000000)"
#define BUT(assignment) "UPDATE hx_subject SET " assignment

static const struct move from_open = {1, "open", "next"};
static const struct move from_busy = {1, "busy", "next"};
static const struct stride keeps = {.transitions = 1, .lease_ms = LEASE_MS};

static void create(struct unit *unit, const struct stamp *stamp)
{
	static const struct workflow workflow = {.name = "invoice", .initial_status = "open"};
	static const struct entity_machine machine = {.workflow = &workflow, .kind = KIND};
	struct entity_ref ref = {slice_str("default"), &machine, slice_str("inv-1")};

	entity_create(unit, stamp, &ref, /* subject= */ 9, slice_str("{}"), slice_of(NULL, 0));
}

static void transition(struct unit *unit, const struct stamp *stamp)
{
	subject_transition(unit, stamp, &from_open, VERSION);
}

static void claim(struct unit *unit, const struct stamp *stamp)
{
	subject_claim(unit, stamp, &from_open, VERSION, LEASE_MS);
}

static void finish(struct unit *unit, const struct stamp *stamp)
{
	subject_finish(unit, stamp, &from_busy, FENCE);
}

static void release_open(struct unit *unit, const struct stamp *stamp)
{
	subject_release(unit, stamp, &from_busy, FENCE, RELEASED_OPEN);
}

static void release_in_doubt(struct unit *unit, const struct stamp *stamp)
{
	subject_release(unit, stamp, &from_busy, FENCE, RELEASED_IN_DOUBT);
}

static void revert(struct unit *unit, const struct stamp *stamp)
{
	subject_revert(unit, stamp, &from_busy, FENCE);
}

static void take_over(struct unit *unit, const struct stamp *stamp)
{
	subject_take_over(unit, stamp, 1, "busy", FENCE, LEASE_MS);
}

static void seize(struct unit *unit, const struct stamp *stamp)
{
	subject_seize(unit, stamp, &from_open, VERSION, &keeps);
}

static void advance(struct unit *unit, const struct stamp *stamp)
{
	subject_advance(unit, stamp, &from_busy, FENCE, &keeps);
}

static void advance_child(struct unit *unit, const struct stamp *stamp)
{
	static const struct stride of_child = {.transitions = 1, .lease_ms = LEASE_MS, .child = CHILD_UNTOLD};

	subject_advance(unit, stamp, &from_busy, FENCE, &of_child);
}

static const struct move stays_busy = {1, "busy", "busy"};

static void go_on(struct unit *unit, const struct stamp *stamp)
{
	subject_advance(unit, stamp, &stays_busy, FENCE, &keeps);
}

static void go_on_child(struct unit *unit, const struct stamp *stamp)
{
	static const struct stride of_child = {.transitions = 1, .lease_ms = LEASE_MS, .child = CHILD_UNTOLD};

	subject_advance(unit, stamp, &stays_busy, FENCE, &of_child);
}

static void shift(struct unit *unit, const struct stamp *stamp)
{
	subject_shift(unit, stamp, &from_open, VERSION, /* settles= */ false);
}

static void shift_whoever_holds(struct unit *unit, const struct stamp *stamp)
{
	subject_shift(unit, stamp, &from_busy, /* version= */ 0, /* settles= */ false);
}

static void shift_unheld(struct unit *unit, const struct stamp *stamp)
{
	subject_shift(unit, stamp, &from_open, SHIFT_UNHELD, /* settles= */ false);
}

static void withdraw(struct unit *unit, const struct stamp *stamp)
{
	subject_withdraw(unit, stamp, &from_busy, VERSION);
}

static void hold(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_hold(unit, 1, FENCE, /* if_past= */ false);
}

static void hold_past(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_hold(unit, 1, FENCE, /* if_past= */ true);
}

static void heartbeat(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_heartbeat(unit, 1, FENCE, LEASE_MS);
}

static void end_claims(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_end_claims(unit, KIND);
}

static void advance_claims(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_advance_claims(unit, 100);
}

static void look_up(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	subject_look_up(unit, 1, /* op= */ 5);
}

#define SAME "SELECT 1"
#define OP(op)                                                                                                         \
	"INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"            \
	" VALUES (1, 3, '', 'open', 4, 7, " #op ", 'here', 1000000, x'00')"
#define HELD BUT("owner = 'held', until = 9223372036854775807")

/* clang-format off */
static const struct guard guards[] = {
	{"create-taken", "SELECT 1", ENTITY, create, NULL},
	{"transition-status", FREE, BUT("status = 'paid'"), transition, NULL},
	{"transition-owner", FREE, BUT("owner = 'there', until = 1000500"), transition, NULL},
	{"claim-status", FREE, BUT("status = 'paid'"), claim, NULL},
	{"claim-version", FREE, BUT("version = 5"), claim, NULL},
	{"finish-status", CLAIMED, BUT("status = 'next', owner = NULL, until = NULL"), finish, NULL},
	{"release-status", CLAIMED, BUT("status = 'next', owner = NULL, until = NULL"), release_open, NULL},
	{"release-effort", CLAIMED, SAME, release_open, "SELECT 1 FROM hx_subject WHERE effort <> 6"},
	{"release-doubt", CLAIMED, SAME, release_in_doubt, "SELECT 1 FROM hx_subject WHERE doubt = 0"},
	{"release-keeps-a-doubt", CLAIMED, BUT("doubt = 1"), release_open, "SELECT 1 FROM hx_subject WHERE doubt = 0"},
	{"revert-status", LAPSED, BUT("status = 'other'"), revert, NULL},
	{"take-over-until", LAPSED, BUT("until = 1000001"), take_over, NULL},
	{"take-over-status", LAPSED, BUT("status = 'other'"), take_over, NULL},
	{"seize-status", FREE, BUT("status = 'paid'"), seize, NULL},
	{"advance-owner", CLAIMED, BUT("owner = NULL, until = NULL"), advance, NULL},
	{"go-on-fence", CLAIMED, BUT("fence = 8"), go_on, NULL},
	{"go-on-status", CLAIMED, BUT("status = 'other'"), go_on, NULL},
	{"go-on-owner", CLAIMED, BUT("owner = NULL, until = NULL"), go_on, NULL},
	{"go-on-child", CHILD, "UPDATE hx_run SET asked = 'fail'", go_on_child, NULL},
	{"child-goes-on", CHILD, "UPDATE hx_run SET asked = 'fail'", advance_child, NULL},
	{"shift-status", FREE, BUT("status = 'paid'"), shift, NULL},
	{"shift-owner", CLAIMED, BUT("owner = NULL, until = NULL"), shift_whoever_holds, NULL},
	{"shift-unheld", FREE, BUT("owner = 'there', until = 1000500"), shift_unheld, NULL},
	{"shift-settles", FREE, BUT("doubt = 1"), shift, "SELECT 1 FROM hx_subject WHERE doubt = 0"},
	{"withdraw-status", CLAIMED, BUT("status = 'other'"), withdraw, NULL},
	{"withdraw-version", CLAIMED, BUT("version = 5"), withdraw, NULL},
	{"withdraw-doubt", CLAIMED, SAME, withdraw, "SELECT 1 FROM hx_subject WHERE doubt = 0"},
	{"hold-owner", CLAIMED, BUT("owner = NULL, until = NULL"), hold, NULL},
	{"hold-past", LAPSED, BUT("until = 1000001"), hold_past, NULL},
	{"heartbeat-held", CLAIMED, HELD, heartbeat, NULL},
	{"look-up-op", FREE "; " OP(5), "UPDATE hx_history SET op = 6", look_up, GUARD_FINDS},
	{"end-claims-kind", CLAIMED, BUT("kind = 4"), end_claims, "SELECT 1 FROM hx_subject WHERE until <> 1000500"},
	{"advance-claims-held", CLAIMED, HELD, advance_claims, "SELECT 1 FROM hx_subject WHERE until <> 9223372036854775807"},
};
/* clang-format on */

int main(int argc, char **argv)
{
	return guards_main(guards, sizeof guards / sizeof *guards, argc, argv);
}
