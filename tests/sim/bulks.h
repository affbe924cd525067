/*
 * What the simulations of bulks share: one bulk over one subject (1), what must hold of it, and those who work on it.
 *
 * Before it is included: bulk_policy, stmt_moment and stmt_tell (own_rows.h), hash_subject(), which hashes what there is beside the bulk, and
 * SETTLE_ROUNDS_MAX.
 */
#ifndef HX_TESTS_SIM_BULKS_H
#define HX_TESTS_SIM_BULKS_H

#include "flow/bulk_hand.h"
#include "flow/single.h"
#include "sim/explore.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define BULK INT64_C(1000000) /* younger than what it selects */

/* As it begins. */
static struct bulk_begun {
	const char *kind, *verb, *condition, *arguments, *state;
} bulk;

/* clang-format off */

/* ?2: SELECTING: without its item. */
DB_STMT(stmt_setup_bulk, "sim_bulk_setup_bulk", "ittttt", "",
	"INSERT INTO hx_bulk (subject, workspace, requester, verb, kind, condition, arguments, state, selected, due_at, created_at)"
	" VALUES (?1, 'default', 'me', ?3, ?5, ?4, ?6, ?2, ?2 = 'RUNNING', hx_now_ms(), hx_now_ms())");

DB_STMT(stmt_setup_item, "sim_bulk_setup_item", "", "",
	"INSERT INTO hx_bulk_item (bulk, n, subject) SELECT subject, 0, 1 FROM hx_bulk WHERE state = 'RUNNING'");

#define BULK_IS_OVER "b.state IN ('COMPLETED', 'CANCELLED')"

/* Is there something for a hand, something to be ended, has it been selected, and is it over? */
DB_STMT(stmt_work, "sim_bulk_work", "", "iiii",
	"SELECT b.state = 'RUNNING' AND EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL),"
	" b.state = 'CANCELLING' OR (b.state = 'RUNNING' AND NOT EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL)),"
	" b.state IN ('RUNNING', 'CANCELLING'), " BULK_IS_OVER " FROM hx_bulk b");

/* When it is due decides nothing here: whoever comes by works on it. */
DB_STMT(stmt_hash_bulk, "sim_bulk_hash", "", "tiiitt",
	"SELECT b.state, b.selected, b.after_id, b.due_at IS NULL, i.result, i.code FROM hx_bulk b LEFT JOIN hx_bulk_item i ON i.bulk = b.subject");

/* One row: what is wrong, as numbers of findings. ?1: how often the verb was carried out. */
DB_STMT(stmt_check_bulk, "sim_bulk_check", "i", "iiiiii" "iit",
	"SELECT"
	/* B1 */
	" (SELECT b.selected <> (SELECT count(*) FROM hx_bulk_item) FROM hx_bulk b),"
	/* B3 */
	" ?1 > 1, ?1 <> (SELECT count(*) FROM hx_bulk_item WHERE result = 'done'),"
	/* B4 */
	" (SELECT (b.due_at IS NULL) <> (" BULK_IS_OVER ") FROM hx_bulk b),"
	" (SELECT " BULK_IS_OVER " AND EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL) FROM hx_bulk b),"
	/* whatever has changed, it is told as that */
	" (SELECT count(*) FROM hx_bulk_item WHERE result NOT IN ('done', 'cancelled') AND result || code <> 'skippedNO_LONGER_MATCHES'),"
	/* for what is compared with before */
	" (SELECT b.state IN ('CANCELLING', 'CANCELLED') FROM hx_bulk b), (SELECT " BULK_IS_OVER " FROM hx_bulk b),"
	" (SELECT max(result) FROM hx_bulk_item)");

/* clang-format on */

static inline uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	return sim_hash_answer(sim, &stmt_hash_bulk, hash_subject(sim, hash));
}

/* Rows of the bulk and of its items, which no subject stands for: who writes one has it until its commit. */
static inline unsigned rows_locked(const struct unit *unit)
{
	enum { THE_BULK = 1, THE_ITEM = 2 };
	static const struct {
		const char *stmt;
		unsigned rows;
	} writes[] = {{"bulk_freeze", THE_BULK | THE_ITEM},
		      {"bulk_renew", THE_BULK},
		      {"bulk_cancel", THE_BULK},
		      {"bulk_item_ended", THE_ITEM},
		      {"bulk_finish", THE_BULK | THE_ITEM}};
	unsigned locked = 0;

	for (unsigned line = 0; line < unit->lines_n; line++)
		for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
			if (strcmp(unit->lines[line].stmt->name, writes[i].stmt) == 0)
				locked |= writes[i].rows;
	return locked;
}
#define OWN_ROWS_LOCKED rows_locked
#include "sim/own_rows.h" /* of these */

static inline bool there_is(struct sim *sim, int what)
{
	struct unit_result result = ask_store(sim, &stmt_work, 0, NULL);

	return db_cell(&result.rows[0], 0, (size_t)what)->i != 0;
}
enum { FOR_A_HAND, TO_BE_ENDED, UNDER_WAY, OVER };

/* ---- what must hold ---- */

/* What the check has seen; a scenario may have more after it. */
struct bulk_notes {
	bool cancelled, over;
	char result[16];
};

/* Of the bulk; `done`: how often its verb was carried out, as the history of what it is about has it. */
static inline void check_bulk(struct sim *sim, int64_t done)
{
	static const char *const words[] = {
		"B1: the bulk has not the items that it has selected",
		"B3: an item was done twice",
		"B3: what was done is not what is told",
		"B4: nobody will ever look at the bulk, or it is due after its end",
		"a bulk is over before its items are",
		"an item that matches no longer is told to be something else",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct db_value param = db_int(done);
	struct bulk_notes *was = (struct bulk_notes *)sim->state.notes, now = {0};
	struct unit_result result = ask_store(sim, &stmt_check_bulk, 1, &param);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(rows, 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	now.cancelled = db_cell(rows, 0, FOUND)->i;
	now.over = db_cell(rows, 0, FOUND + 1)->i;
	if (db_cell(rows, 0, FOUND + 2)->type != DB_NULL)
		snprintf(now.result, sizeof now.result, "%.*s", SLICE_ARGS(db_cell(rows, 0, FOUND + 2)->s));
	if (was->result[0] && strcmp(was->result, now.result) != 0)
		sim_violate(sim, "B2: the result of an item was %s, and is %s", was->result, now.result);
	if (was->cancelled && !now.cancelled)
		sim_violate(sim, "a bulk goes on after its cancel");
	if (was->over && !now.over)
		sim_violate(sim, "a bulk that was over is not any more");
	if (was->over && strcmp(was->result, now.result) != 0)
		sim_violate(sim, "an item gets a result after the end of its bulk");
	*was = now;
}

/* ---- the cast ---- */

static inline bool has_work(struct sim *sim)
{
	return there_is(sim, FOR_A_HAND);
}

/* Whoever has worked on it looks, whatever has come of that. */
static inline bool is_under_way(struct sim *sim)
{
	return there_is(sim, UNDER_WAY);
}

static inline void init_hand(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	bulk_hand_init((struct bulk_hand *)task, BULK, /* hand= */ 0, /* hands= */ 1, /* after= */ -1, &bulk_policy,
		       texts);
}

static inline enum hx_code took(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_CLAIM_FAILED;
}

static inline void build_finish(const struct single *single, struct unit *unit)
{
	bulk_finish(unit, &single->stamp, BULK);
}

static inline void build_bulk_cancel(const struct single *single, struct unit *unit)
{
	(void)single;
	bulk_cancel(unit, slice_str("default"), BULK);
}

/* All of them: the last slice. */
static inline void build_freeze(const struct single *single, struct unit *unit)
{
	static const struct bulk_slice slice = {BULK, 0, 1, 0, 1, {"[1]", 3}, true};

	(void)single;
	bulk_freeze(unit, &slice);
}

#define OF_A_UNIT(name, build)                                                                                         \
	static inline void name(union sim_task *task, const void *plan, struct arena *texts)                           \
	{                                                                                                              \
		(void)plan, (void)texts;                                                                               \
		single_init((struct single *)task, NULL, build, took);                                                 \
	}                                                                                                              \
	static inline void name(union sim_task *task, const void *plan, struct arena *texts)
OF_A_UNIT(init_finisher, build_finish);
OF_A_UNIT(init_bulk_canceller, build_bulk_cancel);
OF_A_UNIT(init_freezer, build_freeze);

#define HAND(name, node)                                                                                               \
	{                                                                                                              \
		name, node, true, init_hand, NULL, has_work                                                            \
	}
#define FINISHER(node)                                                                                                 \
	{                                                                                                              \
		"finisher", node, true, init_finisher, NULL, is_under_way                                              \
	}
#define BULK_CANCELLER(node)                                                                                           \
	{                                                                                                              \
		"canceller", node, false, init_bulk_canceller, NULL, NULL                                              \
	}

/* ---- from its setup to its end ---- */

static inline void make_bulk(struct sim *sim)
{
	struct db_value params[] = {db_int(BULK),           db_str(bulk.state), db_str(bulk.verb),
				    db_str(bulk.condition), db_str(bulk.kind),  db_str(bulk.arguments)};

	(void)ask_store(sim, &stmt_setup_bulk, sizeof params / sizeof *params, params);
	(void)ask_store(sim, &stmt_setup_item, 0, NULL);
}

/* When all goes well; false: there is nothing to do for it now. */
static inline bool settle_bulk(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (has_work(sim))
		init_hand(&task, NULL, &sim->texts);
	else if (there_is(sim, TO_BE_ENDED))
		init_finisher(&task, NULL, &sim->texts);
	else
		return false;
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, sim->scenario->check);
	return true;
}

/* One that is SELECTING waits for who selects, who is not brought back here. */
static inline void bulk_settled(struct sim *sim)
{
	sim->scenario->check(sim);
	if (!there_is(sim, OVER) && strcmp(bulk.state, BULK_SELECTING) != 0)
		sim_violate(sim, "when all goes well, the bulk does not come to its end");
}

#endif
