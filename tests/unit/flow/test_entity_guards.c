/* Every guard of entity.c and entity_table.c: see guards.h. The call is noted by "admin", version 3 of the definition. */
#include "unit/flow/guards.h"

#include "flow/entity.h"

#define VERSION 4

#define SUBJECT                                                                                                        \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, effort, updated_at, seq, head)"                 \
	" VALUES (1, 3, 'open', 4, 0, 7, 6, 1000000, 3, x'00')"
#define FRESH                                                                                                          \
	SUBJECT "; INSERT INTO hx_entity (subject, workspace, workflow, name, data, claim_step, claim_from,"           \
		" claim_requester, claim_input, claim_effort, claim_address, claim_version)"                           \
		" VALUES (1, 'default', 'invoice', 'inv-1', '{}', 'ping', 'open', 'admin', '{}', 6, '', 3)"
/* Something of the step is kept. */
#define KEPT_OF(step, effort, open)                                                                                     \
	"INSERT INTO hx_kept_call (subject, step, effort, from_status, requester, input, data, address, version, open)" \
	" VALUES (1, '" step "', " effort ", 'open', 'admin', '{}', '{}', '', 3, " open ")"
#define KEPT FRESH "; " KEPT_OF("ping", "6", "1")
/* In a table of the user's, which is what its row looks like to the engine. */
#define ROW                                                                                                            \
	FRESH "; CREATE TABLE orders (id TEXT, status TEXT, version INTEGER, updated_at INTEGER);"                     \
	      "INSERT INTO orders VALUES ('inv-1', 'open', 4, 0)"
#define ROW_CLAIMED                                                                                                    \
	ROW "; UPDATE orders SET status = 'busy';"                                                                     \
	    "UPDATE hx_subject SET status = 'busy', owner = 'here', until = 1000000"
#define BUT_ROW(assignment) "UPDATE orders SET " assignment
#define BUT(assignment) "UPDATE hx_subject SET " assignment
#define BUT_KEPT(assignment) "UPDATE hx_kept_call SET " assignment

static const struct move from_open = {1, "open", "next"};
static const struct move from_busy = {1, "busy", "next"};
static const struct entity_sent call = {
	.step = {"ping", 4},
	.from = "open",
	.requester = {"admin", 5},
	.claimant = {"admin", 5},
	.input = {"{}", 2},
	.effort = 6,
	.counter = 6,
	.version = 3,
	.kept_version = 3,
	.data = {"{}", 2},
	.address = {"", 0},
	.fence = 7,
	.at_version = VERSION,
};

static void claim(struct unit *unit, const struct stamp *stamp)
{
	entity_claim(unit, stamp, &from_open, VERSION, LEASE_MS, &call);
	entity_note_claim(unit, 1, "open", &call);
}

/* By one who has read that a call is kept. */
static void claim_kept(struct unit *unit, const struct stamp *stamp)
{
	struct entity_sent kept = call;

	kept.kept = true;
	entity_claim(unit, stamp, &from_open, VERSION, LEASE_MS, &kept);
	entity_note_claim(unit, 1, "open", &kept);
}

/* As the engine makes it for a table of these columns. It lives as long as the program. */
static const struct entity_table *orders(void)
{
	static const char definition[] =
		"{\"workflow\":\"invoice\",\"kind\":\"entity\",\"meta\":{\"table\":\"orders\"},\"status_types\":[\"open\","
		"\"next\"],\"initial_status\":\"open\",\"steps\":[{\"step_id\":1,\"step_key\":\"ping\",\"status\":\"open\","
		"\"successful_state\":\"next\"}]}";
	static const struct entity_table *table;
	static struct arena arena;
	const struct db_value columns[] = {db_str("id"),         db_str("TEXT"),    db_str("status"),
					   db_str("TEXT"),       db_str("version"), db_str("INTEGER"),
					   db_str("updated_at"), db_str("INTEGER")};
	const struct workflow *workflow;
	struct findings findings;

	if (table)
		return table;
	arena_init(&arena, 1u << 20);
	findings_init(&findings, &arena);
	workflow_parse("invoice.json", slice_str(definition), &arena, &findings, &workflow);
	assert_non_null(workflow);
	table = entity_table_new(workflow, &(struct db_rows){4, 2, columns}, /* postgres= */ false, &arena, &findings);
	assert_non_null(table);
	return table;
}

static struct table_row row(void)
{
	return (struct table_row){orders(), {"inv-1", 5}, VERSION, {"", 0}};
}

static void table_transition(struct unit *unit, const struct stamp *stamp)
{
	struct table_row r = row();

	entity_table_transition(unit, stamp, &r, &from_open);
}

static void table_claim(struct unit *unit, const struct stamp *stamp)
{
	struct table_row r = row();

	entity_table_claim(unit, stamp, &r, &from_open, LEASE_MS, &call);
	entity_note_claim(unit, 1, "open", &call);
}

static void table_finish(struct unit *unit, const struct stamp *stamp)
{
	struct table_row r = row();

	entity_table_finish(unit, stamp, &r, &from_busy, call.fence);
}

static void table_revert(struct unit *unit, const struct stamp *stamp)
{
	struct table_row r = row();

	entity_table_revert(unit, stamp, &r, &from_busy, call.fence);
}

static void note(struct unit *unit, const struct stamp *stamp)
{
	kept_call_note(unit, stamp->op, 1, &call);
}

/* By one who takes what he has read for his own. */
static void note_kept(struct unit *unit, const struct stamp *stamp)
{
	struct entity_sent kept = call;

	kept.kept = true;
	kept_call_note(unit, stamp->op, 1, &kept);
}

static void again(struct unit *unit, const struct stamp *stamp)
{
	kept_call_again(unit, stamp->op, 1, &call);
}

static void failed_alone(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	kept_call_answered(unit, 1, call.effort, call.step, /* alone= */ true);
}

static void put_away(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	kept_call_put_away(unit, 1, call.fence);
}

static void forget(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	kept_call_forget(unit, 1, call.effort, call.step);
}

static void change(struct unit *unit, const struct stamp *stamp)
{
	entity_change(unit, stamp, 1, "open", VERSION, slice_str("{\"a\":1}"));
}

#define RAISED "SELECT 1 FROM hx_subject WHERE effort > 7"
#define IS_KEPT "SELECT 1 FROM hx_kept_call"
#define IS_GONE "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM hx_kept_call)"

/* clang-format off */
static const struct guard guards[] = {
	{"entity-claim-status", FRESH, BUT("status = 'paid'"), claim, NULL},
	{"entity-claim-version", FRESH, BUT("version = 5"), claim, NULL},
	{"entity-claim-effort", FRESH, BUT("effort = 7"), claim, NULL},
	{"claim-over-call", FRESH, KEPT_OF("ping", "6", "1"), claim, NULL},
	{"claim-over-answered", KEPT, "DELETE FROM hx_kept_call", claim_kept, NULL},
	{"table-claim-effort", ROW, BUT("effort = 7"), table_claim, NULL},
	{"table-claim-over-call", ROW, KEPT_OF("ping", "6", "1"), table_claim, NULL},
	{"table-status", ROW, BUT_ROW("status = 'paid'"), table_transition, NULL},
	{"table-version", ROW, BUT_ROW("version = 5"), table_transition, NULL},
	{"table-claim-status", ROW, BUT_ROW("status = 'paid'"), table_claim, NULL},
	{"table-claim-version", ROW, BUT_ROW("version = 5"), table_claim, NULL},
	{"table-leave-status", ROW_CLAIMED, BUT_ROW("status = 'paid'"), table_finish, NULL},
	{"table-revert-status", ROW_CLAIMED, BUT_ROW("status = 'paid'"), table_revert, "SELECT 1 FROM orders WHERE status <> 'paid'"},
	{"note-over-another", FRESH, KEPT_OF("ping", "6", "1"), note_kept, NULL},
	{"note-unseen", FRESH, KEPT_OF("ping", "5", "1"), note, NULL},
	{"note-effort", FRESH, BUT("effort = 7"), note, NULL},
	{"note-over-claim", FRESH, BUT("fence = 8"), note, NULL},
	{"note-over-data", FRESH, BUT("version = 5"), note, NULL},
	{"again-answered", KEPT, BUT_KEPT("effort = 7"), again, NULL},
	{"again-another", KEPT, BUT_KEPT("version = 2"), again, NULL},
	{"put-away-twice", FRESH, "UPDATE hx_entity SET claim_effort = NULL", put_away, IS_KEPT},
	{"put-away-another", FRESH, BUT("fence = 8"), put_away, IS_KEPT},
	{"forget-another", KEPT, BUT_KEPT("effort = 7"), forget, IS_GONE},
	{"data-version", FRESH, BUT("version = 5"), change, NULL},
	{"data-claimed", FRESH, BUT("owner = 'there', until = 1000500"), change, NULL},
	{"data-in-doubt", FRESH, BUT("doubt = 1"), change, NULL},
	{"data-over-call", FRESH, KEPT_OF("pong", "6", "1"), change, NULL},
	{"answered-owner", KEPT, BUT("owner = 'there', until = 1000500"), failed_alone, IS_GONE},
	{"answered-in-doubt", KEPT, BUT("doubt = 1"), failed_alone, IS_GONE},
	{"answered-effort", KEPT, BUT("effort = 7"), failed_alone, RAISED},
	{"answered-put-away", KEPT "; " BUT("owner = 'there', until = 1000500, doubt = 1") "; UPDATE hx_entity SET claim_effort = NULL",
	 "UPDATE hx_entity SET claim_effort = 6", failed_alone, IS_GONE},
	{"answered-other-key", KEPT "; " BUT("doubt = 1") "; UPDATE hx_entity SET claim_effort = 5",
	 "UPDATE hx_entity SET claim_effort = 6", failed_alone, IS_GONE},
	{"failed-alone", KEPT, BUT_KEPT("open = 2"), failed_alone, IS_GONE},
	{"answered-another-step", KEPT, BUT_KEPT("step = 'pong'"), failed_alone, IS_GONE},
};
/* clang-format on */

int main(int argc, char **argv)
{
	return guards_main(guards, sizeof guards / sizeof *guards, argc, argv);
}
