/*
 * The store of the scenarios of functions, seen from here: what is told apart, what is due, and what must hold of its rows on every edge.
 *
 *  F1  seq rises by one with each change of an entry: a change has a number that none before it had.
 *  F2  An entry that has ended does not change, but by a person's retry, or by a drop before the code has seen it, which is none of a step's.
 *  F3  A turn ends only by its worker, or when its lease is over.
 *  F5  What is not at its end has an owner, a turn, a time, or waits for something that there is.
 *  F6  Nothing is open, begun or owed when it is COMPLETED or CANCELLED; it is CANCELLED after its children.
 *  F7  While it is CANCELLING nothing begins but what undoes; while it is PAUSED nothing does, and nobody is given a turn.
 *  F8  An event is taken by one entry, which is done with it; one that was dropped has taken none.
 */
#ifndef HX_TESTS_SIM_FUNCTION_STORE_H
#define HX_TESTS_SIM_FUNCTION_STORE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "flow/run_children.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/run_rules.h"
#include "sim/walks.h"
#include "sim/well.h"
#include "sim/world.h"

#define ROOT 1
#define LEASE_MS 60000
#define ENTRIES_MAX 16
#define ROWS_MAX 3

static struct {
	struct sim *sim;
	bool tree;          /* the root is a run, whose child is a function */
	bool retries;       /* a person lets a step begin that had ended */
	bool may_pause;     /* nobody resumes it any more */
	bool may_wait;      /* nobody sends the event */
	bool drops;         /* a child that was dropped is CANCELLED in the end */
	const char *policy; /* of its steps */
	unsigned decisions; /* of a person, that a step was not done: its effect may be there once more for each */
} fixture;

/* clang-format off */

#define STMT(id, takes, columns, text) static const struct db_stmt id = {.name = #id, .sql = text, .in = takes, .out = columns}
#define ALL " FROM hx_function f JOIN hx_subject s ON s.id = f.subject JOIN hx_run r ON r.subject = f.subject"

STMT(stmt_setup_run, "i", "", "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', CASE ?1 WHEN 0 THEN 'f' ELSE 'tree' END, ?1, 'me', '{}', CASE ?1 WHEN 0 THEN NULL ELSE hx_now_ms() END, hx_now_ms())");
STMT(stmt_setup_counted, "", "", RUNS_SETUP_COUNTED);
STMT(stmt_setup_function, "", "", "INSERT INTO hx_function (subject, workspace, name, turn_at) VALUES (1, 'default', 'f', hx_now_ms())");
STMT(stmt_setup_poll, "", "", "INSERT INTO hx_function_poll (workspace, name, version, at) VALUES ('default', 'f', '1', 9000000000000000),"
	" ('default', 'g', '1', 9000000000000000)");
STMT(stmt_claimable, "t", "i", "SELECT f.subject" ALL " WHERE f.name = ?1 AND f.turn_at <= hx_now_ms() AND coalesce(r.asked, '') NOT IN ('cancel', 'pause')"
	" AND (coalesce(r.child, '') <> 'open' OR s.status = 'CANCELLING' OR NOT " RUN_IS_STOPPED("r.parent") ")");
STMT(stmt_looks, "", "i", "SELECT f.subject" ALL " WHERE f.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()) ORDER BY f.subject");
STMT(stmt_asked, "", "i", "SELECT subject FROM hx_run WHERE asked IS NOT NULL AND asked NOT IN ('fail', 'cancelling') ORDER BY subject");
STMT(stmt_driven, "", "i", "SELECT r.subject FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.definition_version > 0"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))");
STMT(stmt_moment, "", "i", "SELECT min(m) FROM (SELECT due_at AS m FROM hx_function UNION ALL SELECT turn_at FROM hx_function"
	" UNION ALL SELECT due_at FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

/* All that decides the future. */
STMT(stmt_hash_functions, "", "tiiiiiittiiitiit", "SELECT f.version, f.seq, f.taken_seq, f.cold_seq, f.revision, f.entries_n, f.failed_at, f.body_hash,"
	" f.awaits, f.any_of, f.lapses, f.bytes, f.held, f.turn_at, f.due_at, f.worker FROM hx_function f ORDER BY f.subject");
STMT(stmt_hash_runs, "", "tiiiiitittttitt", "SELECT s.status, s.version, s.fence, s.owner IS NULL, s.until, s.doubt, r.awaits, r.due_at, r.child, r.asked,"
	" r.output, r.step_status, r.completed_at IS NULL, r.error, s.owner FROM hx_run r JOIN hx_subject s ON s.id = r.subject ORDER BY r.subject");
STMT(stmt_hash_entries, "", "iititiiittti", "SELECT run > 1, i, kind, seq, state, attempt, redo, n, name, policy, output, wake_at"
	" FROM hx_entry ORDER BY run, i");
STMT(stmt_hash_events, "", "ttii", "SELECT id, name, taken_by, at FROM hx_run_event ORDER BY run, id");
STMT(stmt_hash_steps, "", "iiti", "SELECT position, status, output, undone_at IS NULL FROM hx_run_step ORDER BY run, position");

STMT(stmt_entries, "", "iiittit", "SELECT run, i, seq, state, kind, ended, name FROM hx_entry ORDER BY run, i");
STMT(stmt_rows, "", "iit", "SELECT f.subject, f.seq, s.status" ALL " ORDER BY f.subject");

#define COUNT(what) " (SELECT count(*) " what "),"
#define TERMINAL "s.status IN ('COMPLETED', 'FAILED', 'CANCELLED')"
#define OVER "s.status IN ('COMPLETED', 'CANCELLED')"
STMT(stmt_check, "", "iiiiiiiiiiiii", "SELECT"
	COUNT("FROM hx_entry e JOIN hx_subject s ON s.id = e.run WHERE e.state = 'begun' AND s.owner IS NULL")
	COUNT("FROM hx_entry e JOIN hx_subject s ON s.id = e.run WHERE e.ended = 0 AND " OVER)
	COUNT("FROM hx_subject s WHERE s.status = 'CANCELLED' AND EXISTS (SELECT 1 FROM hx_entry c JOIN hx_entry t ON t.run = c.run AND t.label = c.label"
	      " AND t.about = '' AND t.state = 'done' WHERE c.run = s.id AND c.about = 'compensate' AND NOT EXISTS (SELECT 1 FROM hx_entry u"
	      " WHERE u.run = c.run AND u.label = c.label AND u.about = 'undo' AND u.state = 'done'))")
	COUNT("FROM hx_subject s JOIN hx_run k ON k.parent = s.id JOIN hx_subject o ON o.id = k.subject WHERE s.status = 'CANCELLED' AND o.status <> 'CANCELLED'")
	COUNT(ALL " WHERE NOT (" TERMINAL ") AND s.status <> 'PAUSED' AND s.owner IS NULL AND f.turn_at IS NULL AND f.due_at IS NULL AND (r.awaits IS NULL"
	      " OR (r.awaits = 'child' AND NOT EXISTS (SELECT 1 FROM hx_run k WHERE k.parent = r.subject AND k.child = 'open')))")
	COUNT(ALL " WHERE (" TERMINAL ") AND (s.owner IS NOT NULL OR f.turn_at IS NOT NULL)")
	COUNT("FROM hx_run_event v WHERE v.taken_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hx_entry e WHERE e.run = v.run AND e.i = v.taken_by AND e.state = 'done')")
	COUNT("FROM hx_entry e WHERE e.kind = 'event' AND e.state = 'done' AND (SELECT count(*) FROM hx_run_event v WHERE v.run = e.run AND v.taken_by = e.i) <> 1")
	COUNT(ALL " WHERE f.turn_at IS NOT NULL AND (s.owner IS NOT NULL OR s.status = 'PAUSED')")
	COUNT(ALL " WHERE f.turn_at IS NOT NULL AND (f.held IS NOT NULL OR EXISTS (SELECT 1 FROM hx_entry e WHERE e.run = f.subject AND e.state = 'unknown'"
	      " AND e.policy LIKE '% hold'))")
	COUNT("FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.parent IS NOT NULL AND r.asked IS NULL AND r.child <> CASE s.status"
	      " WHEN 'COMPLETED' THEN 'done' WHEN 'FAILED' THEN 'failed' WHEN 'CANCELLED' THEN 'cancelled' ELSE 'open' END")
	" (SELECT count(*) - count(DISTINCT parent || parent_step || parent_n) FROM hx_run WHERE parent IS NOT NULL),"
	RUNS_MISCOUNTED);

STMT(stmt_dropped, "", "i", "SELECT count(*) FROM hx_entry e JOIN hx_subject s ON s.id = e.child WHERE e.state = 'dropped' AND s.status <> 'CANCELLED'");
STMT(stmt_end, "", "ttt", "SELECT s.status, r.awaits, r.workflow FROM hx_run r JOIN hx_subject s ON s.id = r.subject ORDER BY r.subject");
STMT(stmt_tell_runs, "", "t", "SELECT group_concat(r.workflow || ' ' || s.status || ' fence ' || s.fence || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END ||"
	" coalesce(' ' || r.child, '') || coalesce(' asked ' || r.asked, '') || coalesce(' awaits ' || r.awaits, '') || coalesce(' turn in ' || (f.turn_at - hx_now_ms()), '') ||"
	" coalesce(' look in ' || (f.due_at - hx_now_ms()), '') || coalesce(' held ' || f.held, ''), '; ') FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
	" LEFT JOIN hx_function f ON f.subject = r.subject");

/* clang-format on */

static inline struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt, size_t n,
					   const struct db_value *params)
{
	LOCAL_UNIT(unit);

	unit_add(&unit, UNIT_ANY, stmt, (unsigned)n, params);
	return sim_run_unit(sim, &unit);
}

static inline int64_t first_of(struct sim *sim, const struct db_stmt *stmt, const char *name)
{
	struct db_value param = db_str(name ? name : "");
	struct unit_result result = ask_store(sim, stmt, name != NULL, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment, 0, NULL);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_functions, hash);
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	hash = sim_hash_answer(sim, &stmt_hash_entries, hash);
	hash = sim_hash_answer(sim, &stmt_hash_events, hash);
	return fixture.tree ? sim_hash_answer(sim, &stmt_hash_steps, hash) : hash;
}

/* ---- what a unit has changed ---- */

struct seen_entry {
	int64_t run, i, seq;
	char state[12], kind[12], name[8];
	bool ended;
};
struct seen {
	unsigned entries_n, rows_n;
	struct seen_entry entries[ENTRIES_MAX];
	struct {
		int64_t subject, seq;
		char status[16];
	} rows[ROWS_MAX];
};

static bool rows_changed;
static struct {
	uint64_t tables;
	struct sim_row row;
	struct seen seen;
} before;

static void look_at(struct sim *sim, struct seen *ret)
{
	struct unit_result entries = ask_store(sim, &stmt_entries, 0, NULL);
	struct unit_result rows = ask_store(sim, &stmt_rows, 0, NULL);
	const struct db_rows *r = &rows.rows[0], *e = &entries.rows[0];

	assert_true(e->n <= ENTRIES_MAX && r->n <= ROWS_MAX);
	*ret = (struct seen){.entries_n = (unsigned)e->n, .rows_n = (unsigned)r->n};
	for (size_t i = 0; i < e->n; i++) {
		struct seen_entry *to = &ret->entries[i];

		to->run = db_cell(e, i, 0)->i;
		to->i = db_cell(e, i, 1)->i;
		to->seq = db_cell(e, i, 2)->i;
		to->ended = db_cell(e, i, 5)->i;
		snprintf(to->state, sizeof to->state, "%.*s", SLICE_ARGS(db_cell(e, i, 3)->s));
		snprintf(to->kind, sizeof to->kind, "%.*s", SLICE_ARGS(db_cell(e, i, 4)->s));
		snprintf(to->name, sizeof to->name, "%.*s", SLICE_ARGS(db_cell(e, i, 6)->s));
	}
	for (size_t i = 0; i < r->n; i++) {
		ret->rows[i].subject = db_cell(r, i, 0)->i;
		ret->rows[i].seq = db_cell(r, i, 1)->i;
		snprintf(ret->rows[i].status, sizeof ret->rows[i].status, "%.*s", SLICE_ARGS(db_cell(r, i, 2)->s));
	}
}

static const struct seen_entry *entry_before(const struct seen_entry *now)
{
	for (unsigned i = 0; i < before.seen.entries_n; i++)
		if (before.seen.entries[i].run == now->run && before.seen.entries[i].i == now->i)
			return &before.seen.entries[i];
	return NULL;
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* F2, F7. */
static void check_change(struct sim *sim, const struct seen_entry *was, const struct seen_entry *now,
			 const char *status)
{
	bool step = is(now->kind, "step") || is(now->kind, "undo");
	bool dropped = is(now->state, "dropped") && !step, again = fixture.retries && is(now->state, "retry");
	bool begins = !step || is(now->state, "begun"), undoes = is(now->kind, "undo") || is(now->kind, "compensate");

	if (was && was->ended && !dropped && !(again && is(was->state, "failed")))
		sim_violate(sim, "F2: %s %s had ended %s, and is %s", now->kind, now->name, was->state, now->state);
	if (is(status, RUN_PAUSED) && begins && (!was || is(now->state, "begun")))
		sim_violate(sim, "F7: %s %s has begun although the run is paused", now->kind, now->name);
	if (is(status, RUN_CANCELLING) && !was && begins && !undoes)
		sim_violate(sim, "F7: %s %s has begun although the run is being cancelled", now->kind, now->name);
	if (is(status, RUN_CANCELLING) && was && !undoes && is(now->state, "begun") && !is(was->state, "unknown"))
		sim_violate(sim, "F7: step %s begins again although the run is being cancelled", now->name);
}

/* F1. */
static void check_journal(struct sim *sim, const struct seen *now, unsigned row)
{
	int64_t subject = now->rows[row].subject, from = 0, to = now->rows[row].seq, changed = 0;
	const char *status = "";

	for (unsigned i = 0; i < before.seen.rows_n; i++)
		if (before.seen.rows[i].subject == subject) {
			from = before.seen.rows[i].seq;
			status = before.seen.rows[i].status;
		}
	for (unsigned i = 0; i < now->entries_n; i++) {
		const struct seen_entry *e = &now->entries[i], *was = entry_before(e);

		if (e->run != subject || (was && was->seq == e->seq && is(was->state, e->state)))
			continue;
		changed++;
		if (e->seq <= from || e->seq > to)
			sim_violate(sim, "F1: %s %s has changed under seq %lld, which is not new", e->kind, e->name,
				    (long long)e->seq);
		for (unsigned k = 0; k < i; k++)
			if (now->entries[k].run == subject && now->entries[k].seq == e->seq)
				sim_violate(sim, "F1: two entries have the seq %lld", (long long)e->seq);
		check_change(sim, was, e, status);
	}
	if (to < from + changed) /* more: an entry has changed twice, or the turn has ended */
		sim_violate(sim, "F1: seq %lld became %lld with %lld changes", (long long)from, (long long)to,
			    (long long)changed);
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	before.tables = hash_all(sim, 1);
	if (!unit->subjects_n || !sim_read_row(sim, unit->subjects[0], &before.row))
		before.row = (struct sim_row){0};
	look_at(sim, &before.seen);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	const struct unit_line *moved = &unit->lines[FUNCTION_LINE_SUBJECT];
	const char *name = unit->lines_n > FUNCTION_LINE_SUBJECT ? moved->stmt->name : "";
	struct seen now;

	rows_changed |= verdict == UNIT_WON;
	if (verdict != UNIT_WON && hash_all(sim, 1) != before.tables)
		sim_violate(sim, "I4: a unit that was %s left something of a function", unit_verdict_name(verdict));
	if (verdict != UNIT_WON)
		return;
	if (is(name, "function_move") && moved->params[8].i && before.row.until > sim->clock.wall.ms)
		sim_violate(sim, "F3: a turn was ended whose lease was not over");
	look_at(sim, &now);
	for (unsigned i = 0; i < now.rows_n; i++)
		check_journal(sim, &now, i);
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result runs = ask_store(sim, &stmt_tell_runs, 0, NULL);
	struct unit_result entries = ask_store(sim, &stmt_entries, 0, NULL);
	const struct db_rows *rows = &entries.rows[0];

	strbuf_add_str(words, ", ");
	strbuf_add_slice(words, db_cell(&runs.rows[0], 0, 0)->s);
	for (size_t i = 0; i < rows->n; i++)
		strbuf_addf(words, ", %.*s %.*s seq %lld %.*s", SLICE_ARGS(db_cell(rows, i, 4)->s),
			    SLICE_ARGS(db_cell(rows, i, 6)->s), (long long)db_cell(rows, i, 2)->i,
			    SLICE_ARGS(db_cell(rows, i, 3)->s));
}

static const struct sim_rows rows_of_functions = {next_moment, hash_all, before_unit, after_unit, tell, .locked = NULL};

static void check_rows(struct sim *sim)
{
	static const char *const words[] = {
		"F6: a step is begun, and nobody has the turn",
		"F6: it is over, and something is open",
		"F6: it is CANCELLED, and something is not undone",
		"F6: it is CANCELLED, and a child of it is not",
		"F5: nothing will ever move it",
		"F5: it has ended, and has an owner or a turn",
		"F8: an event is taken by an entry that is not done",
		"F8: an entry is done with no event, or with two",
		"F7: a turn is there to be taken from a worker, or of one that is paused",
		"F4: a turn is handed out although a person has to decide",
		"a child is not what its parent sees",
		"C1: an entry has two children",
		RUNS_MISCOUNTED_WORDS,
	};
	struct unit_result result = ask_store(sim, &stmt_check, 0, NULL);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

#endif
