/* See ledger.h. */
#include "support/ledger.h"

#include "base/hash.h"
#include "flow/batch_item.h"
#include "support/subjects.h"
#include "support/unit_kinds.h"

#define ARENA_BYTES_MAX (64u << 20)
#define UNITS_MAX 64

/* Not the engine's own reads: these take in all columns. */
static const struct db_stmt stmt_subject = {
	.name = "ledger_subject",
	.sql = "SELECT {ord}kind, status, version, fence, op, coalesce(owner, '-'), seq, updated_at, head, effort,"
	       " CASE WHEN until IS NULL THEN 'none' WHEN until > hx_now_ms() THEN 'live' ELSE 'past' END"
	       " FROM hx_subject{join} WHERE id = ?1",
	.in = "i",
	.out = "itiiitiibit",
};

/* Of times only the side of now on which they are. */
#define SIDE_OF_NOW(time)                                                                                              \
	"CASE WHEN " time " IS NULL THEN 'none' WHEN " time " > hx_now_ms() THEN 'live' ELSE 'past' END"

static const struct db_stmt stmt_gate = {
	.name = "ledger_gate",
	.sql = "SELECT {ord}status, token, fingerprint, held, takeovers, response, " SIDE_OF_NOW("created_at") ", " SIDE_OF_NOW(
		"until") ", " SIDE_OF_NOW("expires_at") ", " SIDE_OF_NOW("sweep_at") " FROM hx_gate_record{join} WHERE key = ?1",
	.in = "b",
	.out = "ibbiibtttt",
};

static const struct db_stmt stmt_notes = {
	.name = "ledger_notes",
	.sql = "SELECT {ord}claim_step, claim_input, claim_effort FROM hx_entity{join}"
	       " WHERE subject = ?1",
	.in = "i",
	.out = "tti",
};

static const struct db_stmt stmt_kept = {
	.name = "ledger_kept",
	.sql = "SELECT {ord}step, effort, from_status, requester, input, data, address, version, open, op FROM hx_kept_call{join}"
	       " WHERE subject = ?1 ORDER BY {ord}step, effort",
	.in = "i",
	.out = "titttttiii",
};

/* All jobs of its queue: itself is 0, those that were pushed are called by their op. */
static const struct db_stmt stmt_jobs = {
	.name = "ledger_jobs",
	.sql = "SELECT {ord}CASE WHEN j.subject = ?1 THEN 0 ELSE j.subject % 100000 END, s.status, s.version, s.fence, s.doubt,"
	       " j.attempt, j.error, j.output, " SIDE_OF_NOW("j.due_at") ", " SIDE_OF_NOW(
		       "j.ended_at") " FROM hx_job j JOIN hx_subject s ON s.id = j.subject{join} WHERE j.workspace = 'default' AND j.queue = 'q' || ?1"
				     " AND j.job_key = 'key'",
	.in = "i",
	.out = "itiiiitttt",
};

/* An account of this number, called as jobs are, and after it its entries. */
#define ACCOUNT_OF_NUMBER "{join} WHERE a.workspace = 'default' AND a.name = 'a' || ?1"

static const struct db_stmt stmt_account = {
	.name = "ledger_account",
	.sql = "SELECT {ord}CASE WHEN a.subject = ?1 THEN 0 ELSE a.subject % 100000 END, a.balance, a.seq"
	       " FROM hx_account a" ACCOUNT_OF_NUMBER,
	.in = "i",
	.out = "iii",
};

static const struct db_stmt stmt_entries = {
	.name = "ledger_entries",
	.sql = "SELECT {ord}l.seq, l.amount, l.key, l.reason, l.balance, l.op"
	       " FROM hx_account a JOIN hx_ledger l ON l.account = a.subject" ACCOUNT_OF_NUMBER " ORDER BY l.seq",
	.in = "i",
	.out = "iittii",
};

/* A bulk of this number, called as jobs are; and its items. Of a time of seconds, only that it is there. */
static const struct db_stmt stmt_bulks = {
	.name = "ledger_bulks",
	.sql = "SELECT {ord}CASE WHEN b.subject = ?1 THEN 0 ELSE b.subject % 100000 END, b.state, b.after_id, b.selected,"
	       " CAST(CASE WHEN b.due_at IS NULL THEN 0 ELSE 1 END AS BIGINT), b.completed_at FROM hx_bulk b{join} WHERE b.workspace = 'w' || ?1",
	.in = "i",
	.out = "itiiii",
};

static const struct db_stmt stmt_bulk_items = {
	.name = "ledger_bulk_items",
	.sql = "SELECT {ord}i.n, i.subject, i.result, i.code FROM hx_bulk_item i{join} WHERE i.bulk = ?1 ORDER BY {ord}i.n",
	.in = "i",
	.out = "iitt",
};

/* A run of this number, called as jobs are, those that were made beside it, and after them what they are made of. */
#define RUNS_OF_NUMBER(id)                                                                                             \
	"{join} WHERE (" id " = ?1 OR (" id " >= 1000000000000000 + ?1 * 100000 AND " id                               \
	" < 1000000000000000 + (?1 + 1) * 100000))"
#define NAME_OF(id) "CASE WHEN " id " = ?1 THEN 0 ELSE " id " % 100000 END"

static const struct db_stmt stmt_runs = {
	.name = "ledger_runs",
	.sql = "SELECT {ord}" NAME_OF(
		"r.subject") ", r.expired, s.status, s.version, s.doubt, CASE WHEN r.parent IS NULL THEN r.run_key ELSE substr(r.run_key, 18) END,"
			     " r.requester, r.input, r.output, r.error, r.at_step, r.attempt, r.redo, r.step_status, r.awaits,"
			     " r.job % 100000, r.undo, " SIDE_OF_NOW("r.step_started_at") ", " SIDE_OF_NOW("r.wait_until") ", " SIDE_OF_NOW("r.due_at") ", " SIDE_OF_NOW(
				     "r.started_at") ", " SIDE_OF_NOW("r.completed_at") ", r.stood_attempt, " SIDE_OF_NOW("r.stood_started_at") ", r.stood_status, r.stood_error, r.definition_version, r.restarted_by % 100000, r.child, r.asked FROM hx_run r JOIN hx_subject s ON s.id = r.subject" RUNS_OF_NUMBER("r.subject") " ORDER BY {ord}r.subject",
	.in = "i",
	.out = "iitiitttttiiittiitttttitttiitt",
};

static const struct db_stmt stmt_steps = {
	.name = "ledger_steps",
	.sql = "SELECT {ord}t.position, t.status, t.attempt, t.output, " SIDE_OF_NOW(
		"t.undone_at") " FROM hx_run_step t{join} WHERE t.run = ?1 ORDER BY {ord}t.position",
	.in = "i",
	.out = "ititt",
};

static const struct db_stmt stmt_events = {
	.name = "ledger_events",
	.sql = "SELECT {ord}e.id, e.name, e.data, e.taken_by FROM hx_run_event e{join} WHERE e.run = ?1"
	       " ORDER BY {ord}e.name, e.id",
	.in = "i",
	.out = "ttti",
};

static const struct db_stmt stmt_slots = {
	.name = "ledger_slots",
	.sql = "SELECT {ord}" NAME_OF("t.holder") ", t.held FROM hx_slot t" RUNS_OF_NUMBER(
		"t.holder") " ORDER BY {ord}t.holder",
	.in = "i",
	.out = "ii",
};

static const struct db_stmt stmt_run_jobs = {
	.name = "ledger_run_jobs",
	.sql = "SELECT {ord}j.subject % 100000, s.status, s.version, s.fence, s.doubt, j.attempt, j.error, j.output, " SIDE_OF_NOW(
		"j.due_at") ", " SIDE_OF_NOW("j.ended_at") " FROM hx_job j JOIN hx_subject s ON s.id = j.subject" RUNS_OF_NUMBER("j.subject") " AND j.run = ?1 ORDER BY {ord}j.subject",
	.in = "i",
	.out = "itiiiitttt",
};

/* The batch of this number, called as runs are, those beside it, and after them what they are made of and paid from. */
#define BATCHES_OF_NUMBER(id)                                                                                          \
	" WHERE (" id " = ?1 OR (" id " >= 1000000000000000 + ?1 * 100000 AND " id                                     \
	" < 1000000000000000 + (?1 + 1) * 100000))"

static const struct db_stmt stmt_batches = {
	.name = "ledger_batches",
	.sql = "SELECT " NAME_OF("b.subject") ", b.expired, s.status, s.version, s.fence, coalesce(s.owner, '-'), " SIDE_OF_NOW(
		"s.until") ", "
			   "b.batch_key, b.cancel_requested, b.needs, b.total, b.next_n, b.succeeded, b.failed, b.unknown, b.accepted,"
			   " b.cancelled, b.charged, b.refunded, b.late, b.flipped_to, b.cleanups, b.error, " SIDE_OF_NOW("b.due_at") ", " SIDE_OF_NOW(
				   "b.loaded_at") ", " SIDE_OF_NOW("b.started_at") ", " SIDE_OF_NOW("b.completed_at") " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject" BATCHES_OF_NUMBER("b.subject") " ORDER BY b.subject",
	.in = "i",
	.out = "iitiittt"
	       "iiiiiiii"
	       "iiiiii"
	       "ttttt",
};

static const struct db_stmt stmt_items = {
	.name = "ledger_items",
	.sql = "SELECT " NAME_OF(
		"i.batch") ", i.n, i.input, i.cost, i.charged, i.status, i.decision, i.attempt, i.failures, i.doubt, i.fence, i.moved, i.op, "
			   " " SIDE_OF_NOW("i.due_at") ", i.output, i.late, i.error FROM hx_batch_item i" BATCHES_OF_NUMBER(
				   "i.batch") " ORDER BY i.batch, i.n",
	.in = "i",
	.out = "iitiittiiiiiitttt",
};

static const struct db_stmt stmt_batch_account = {
	.name = "ledger_batch_account",
	.sql = "SELECT balance, seq FROM hx_account WHERE subject = 1000000000000000 + ?1 * 100000",
	.in = "i",
	.out = "ii",
};

/* Of the keys that the engine makes, what stands after the id of the batch. */
static const struct db_stmt stmt_batch_entries = {
	.name = "ledger_batch_entries",
	.sql = "SELECT l.seq, l.amount, CASE WHEN l.key LIKE '/batch%' THEN substr(l.key, 22) ELSE l.key END, l.reason, l.balance,"
	       " l.op FROM hx_ledger l WHERE l.account = 1000000000000000 + ?1 * 100000 ORDER BY l.seq",
	.in = "i",
	.out = "iittii",
};

static const struct db_stmt stmt_batch_jobs = {
	.name = "ledger_batch_jobs",
	.sql = "SELECT j.subject % 100000, j.action, j.effect_key FROM hx_job j" BATCHES_OF_NUMBER(
		"j.subject") " ORDER BY j.subject",
	.in = "i",
	.out = "itt",
};

/* A function of this number, called as runs are, with its journal; what was made beside it is a run of the same key. */
static const struct db_stmt stmt_functions = {
	.name = "ledger_functions",
	.sql = "SELECT " NAME_OF(
		"r.subject") ", s.status, s.version, s.fence, r.output, r.error, r.awaits, r.asked, f.seq, f.taken_seq, f.revision,"
			     " f.entries_n, f.body_hash, f.awaits, f.lapses, f.worker, " SIDE_OF_NOW("f.turn_at") ", " SIDE_OF_NOW(
				     "f.due_at") ", " SIDE_OF_NOW("r.completed_at") " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
										    " JOIN hx_function f ON f.subject = r.subject" RUNS_OF_NUMBER(
											    "r.subject") " ORDER BY r.subject",
	.in = "i",
	.out = "itiittttiiiittitttt",
};

static const struct db_stmt stmt_function_entries = {
	.name = "ledger_function_entries",
	.sql = "SELECT e.i, e.kind, e.name, e.seq, e.state, e.attempt, e.redo, e.output, e.error, e.awaits FROM hx_entry e"
	       " WHERE e.run = ?1 ORDER BY e.i",
	.in = "i",
	.out = "ittitiittt",
};

/* A schedule of this number, whatever id it has; the slots that wait; and what was started in its workspace. */
#define OF_ITS_WORKSPACE(table) "{join} WHERE " table ".workspace = 'w' || ?1"

static const struct db_stmt stmt_schedules = {
	.name = "ledger_schedules",
	.sql = "SELECT " NAME_OF("c.subject") ", s.status, s.version, c.text, c.paused, c.revision, c.slot_at, " SIDE_OF_NOW(
		"c.due_at") ", c.last_slot,"
			    " c.last_run % 100000, c.started, c.skipped, c.missed FROM hx_schedule c JOIN hx_subject s ON s.id = c.subject" OF_ITS_WORKSPACE(
				    "c"),
	.in = "i",
	.out = "ititiiitiiiii",
};

static const struct db_stmt stmt_schedule_slots = {
	.name = "ledger_schedule_slots",
	.sql = "SELECT w.slot_at, w.backfill FROM hx_schedule_slot w JOIN hx_schedule c ON c.subject = w.schedule" OF_ITS_WORKSPACE(
		"c") " ORDER BY w.slot_at",
	.in = "i",
	.out = "ii",
};

static const struct db_stmt stmt_started_runs = {
	.name = "ledger_started_runs",
	.sql = "SELECT r.subject % 100000, r.run_key, s.status FROM hx_run r JOIN hx_subject s ON s.id = r.subject" OF_ITS_WORKSPACE(
		"r") " ORDER BY r.run_key",
	.in = "i",
	.out = "itt",
};

static const struct db_stmt stmt_started_jobs = {
	.name = "ledger_started_jobs",
	.sql = "SELECT j.subject % 100000, j.job_key, j.action FROM hx_job j" OF_ITS_WORKSPACE(
		"j") " ORDER BY j.subject",
	.in = "i",
	.out = "itt",
};

static const struct db_stmt stmt_seen = {
	.name = "ledger_seen",
	.sql = "SELECT h.name, " SIDE_OF_NOW("h.until") " FROM hx_hook_seen h WHERE h.hook = 'h' || ?1 ORDER BY h.name",
	.in = "i",
	.out = "tt",
};

static void write_hash(struct slice bytes, struct strbuf *out)
{
	strbuf_add_char(out, ' ');
	for (size_t i = 0; i < bytes.n; i++)
		strbuf_addf(out, "%02x", (unsigned char)bytes.p[i]);
}

static void write_cell(const struct db_value *v, struct strbuf *out)
{
	switch (v->type) {
	case DB_NULL:
		strbuf_add_str(out, " null");
		break;
	case DB_INT:
		strbuf_addf(out, " %lld", (long long)v->i);
		break;
	case DB_TEXT:
		strbuf_addf(out, " '%.*s'", SLICE_ARGS(v->s));
		break;
	case DB_BLOB:
		write_hash(v->s, out);
		break;
	}
}

/* One subject's rows out of a unit of two lines: its row, its history. */
static bool write_subject(int64_t id, size_t place, const struct unit_result *result, bool with_hashes, bool expired,
			  struct strbuf *out)
{
	const struct db_rows *subject = &result->rows[0], *history = &result->rows[1];
	uint8_t head[SHA256_BYTES];
	size_t head_n = 0;

	if (subject->n == 0)
		strbuf_addf(out, "subject %zu: absent\n", place);
	for (size_t row = 0; row < subject->n; row++) {
		strbuf_addf(out, "subject %zu:", place);
		for (size_t c = 0; c < subject->columns; c++)
			if (with_hashes || (c != 7 && c != 8))
				write_cell(db_cell(subject, row, c), out);
		strbuf_add_char(out, '\n');
	}
	for (size_t row = 0; row < history->n; row++) {
		const struct db_value *c = db_cell(history, row, 0);
		struct history_row link = {id, c[0].i, c[1].s, c[2].s, c[3].i, c[4].i, c[5].i, c[7].i, c[6].s};

		strbuf_addf(out, "  history %zu:", place);
		for (size_t i = 0; i < history->columns; i++)
			if (with_hashes || i < 7)
				write_cell(&c[i], out);
		strbuf_add_char(out, '\n');
		history_link(&link, slice_of(head, head_n), head);
		head_n = sizeof head;
		if (link.seq != (int64_t)row + 1 || !slice_eq(c[8].s, slice_of(head, head_n))) {
			strbuf_addf(out, "the chain of subject %zu breaks here\n", place);
			return false;
		}
	}
	if (expired && history->n == 0)
		return true;
	if (history->n == LEDGER_HISTORY_MAX || (subject->n == 0) != (history->n == 0) ||
	    (subject->n && !slice_eq(db_cell(subject, 0, 8)->s, slice_of(head, head_n)))) {
		strbuf_addf(out, "the head of subject %zu is not that of its history\n", place);
		return false;
	}
	return true;
}

static void write_others(const char *what, size_t place, const struct db_rows *rows, struct strbuf *out)
{
	for (size_t row = 0; row < rows->n; row++) {
		strbuf_addf(out, "%s %zu:", what, place);
		for (size_t c = 0; c < rows->columns; c++)
			write_cell(db_cell(rows, row, c), out);
		strbuf_add_char(out, '\n');
	}
}

/* Its history is gone, and the head of it is what is left. */
static bool is_expired(const struct db_rows *runs)
{
	return runs->n && db_cell(runs, 0, 0)->i == 0 && db_cell(runs, 0, 1)->i > 0;
}

/* Of each part the statement, and what its rows are called. After the subject's own two lines. */
struct part {
	const struct db_stmt *stmt;
	const char *name;
};

#define FIRST_PART 2
#define PARTS_MAX 6 /* with the end */

static const struct part parts_of[][PARTS_MAX] = {
	[LEDGER_MIXED] = {{&stmt_notes, "note"}, {&stmt_kept, "kept"}, {&stmt_gate, "record"}},
	[LEDGER_SUBJECTS] = {{&stmt_notes, "note"}, {&stmt_kept, "kept"}},
	[LEDGER_GATE] = {{&stmt_gate, "record"}},
	[LEDGER_JOBS] = {{&stmt_jobs, "job"}},
	[LEDGER_ACCOUNTS] = {{&stmt_account, "account"}, {&stmt_entries, "entry"}},
	[LEDGER_BULKS] = {{&stmt_bulks, "bulk"}, {&stmt_bulk_items, "item"}},
	[LEDGER_RUNS] = {{&stmt_runs, "run"},
			 {&stmt_steps, "step"},
			 {&stmt_events, "event"},
			 {&stmt_run_jobs, "run's job"},
			 {&stmt_slots, "slot"}},
	[LEDGER_BATCHES] = {{&stmt_batches, "batch"},
			    {&stmt_items, "item"},
			    {&stmt_batch_account, "its account"},
			    {&stmt_batch_entries, "entry"},
			    {&stmt_batch_jobs, "job"}},
	[LEDGER_FUNCTIONS] = {{&stmt_functions, "function"},
			      {&stmt_function_entries, "entry"},
			      {&stmt_events, "event"}},
	[LEDGER_SCHEDULES] = {{&stmt_schedules, "schedule"},
			      {&stmt_schedule_slots, "slot"},
			      {&stmt_started_runs, "run"}},
	[LEDGER_HOOKS] = {{&stmt_seen, "seen"}, {&stmt_started_runs, "run"}, {&stmt_started_jobs, "job"}},
};

static void build(struct unit *unit, int64_t id, const struct part *part, struct arena *arena)
{
	unsigned char *key = arena_alloc(arena, HX_GATE_KEY_BYTES);

	unit_init(unit, /* op= */ 0);
	UNIT_ADD(unit, UNIT_ANY, &stmt_subject, db_int(id));
	subject_read_history(unit, id, /* after= */ 0, LEDGER_HISTORY_MAX);
	kind_gate_key(id, key);
	for (; part->stmt; part++)
		UNIT_ADD(unit, UNIT_ANY, part->stmt,
			 part->stmt == &stmt_gate ? db_blob(slice_of(key, HX_GATE_KEY_BYTES)) : db_int(id));
}

static bool write_some(struct db *db, enum ledger what, const int64_t ids[], size_t first, size_t n, bool with_hashes,
		       struct arena *arena, struct strbuf *out)
{
	const struct part *part = parts_of[what];
	bool expires = what == LEDGER_RUNS || what == LEDGER_BATCHES;
	struct unit *units[UNITS_MAX];
	struct unit_result *results = arena_zalloc(arena, n * sizeof *results);
	struct hx_error err = {0};
	enum hx_code code = db->driver->begin(db, &err);
	bool sound = true;

	for (size_t i = 0; i < n; i++) {
		units[i] = arena_alloc(arena, sizeof *units[i]);
		build(units[i], ids[i], part, arena);
	}
	if (!code)
		code = db->driver->execute(db, units, n, results, arena, &err);
	if (!code)
		code = db->driver->commit(db, &err);
	if (code) {
		strbuf_addf(out, "%s: %s\n", hx_code_name(code), err.detail);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		bool expired = expires && is_expired(&results[i].rows[FIRST_PART]);

		sound &= write_subject(ids[i], first + i, &results[i], with_hashes, expired, out);
		for (size_t p = 0; part[p].stmt; p++)
			write_others(part[p].name, first + i, &results[i].rows[FIRST_PART + p], out);
	}
	return sound;
}

bool ledger_write(struct db *db, enum ledger what, const int64_t ids[], size_t n, bool with_hashes, struct strbuf *out)
{
	struct arena arena;
	bool sound = true;

	arena_init(&arena, ARENA_BYTES_MAX);
	for (size_t first = 0; first < n; first += UNITS_MAX) {
		size_t some = n - first < UNITS_MAX ? n - first : UNITS_MAX;

		sound &= write_some(db, what, ids + first, first, some, with_hashes, &arena, out);
		arena_reset(&arena);
	}
	arena_release(&arena);
	return sound;
}

static bool write_name(const struct unit *unit, const struct db_value *v, struct strbuf *out)
{
	for (unsigned i = 0; v->type == DB_INT && i < unit->subjects_n; i++) {
		if (v->i == unit->subjects[i]) {
			strbuf_addf(out, " #%u", i);
			return true;
		}
	}
	return false;
}

/* Statements of the gate return times, what is left of them, and (the sweep) ids: of these only that they are there. */
static void write_gate_cell(const struct db_stmt *stmt, size_t column, const struct db_value *v, struct strbuf *out)
{
	bool is_read = strcmp(stmt->name, "gate_read") == 0;
	bool is_left = (is_read && column > 3) || strcmp(stmt->name, "gate_kept") == 0;

	if (is_left && v->type == DB_INT)
		strbuf_add_str(out, v->i > 0 ? " live" : " past");
	else if (v->type == DB_INT && (!is_read || column == 3))
		strbuf_add_str(out, " some");
	else
		write_cell(v, out);
}

/* Of what statements of jobs return, only what does not depend on the time and on which job it was. */
static void write_job_cell(const struct db_stmt *stmt, size_t column, const struct db_value *v, struct strbuf *out)
{
	bool is_claim = strcmp(stmt->name, "job_claim") == 0;

	if (is_claim ? column == 4 || column == 5 : v->type != DB_INT)
		write_cell(v, out);
	else if (strcmp(stmt->name, "job_push_seen") == 0)
		strbuf_addf(out, " %lld", v->i < KIND_JOB_PUSHED ? 0 : (long long)v->i % 100000);
	else if (!is_claim)
		strbuf_add_str(out, " some");
}

/* What it returns first is the id, or the time, of a turn. */
static bool is_of_turn(const char *name)
{
	return strcmp(name, "function_claim") == 0 || strcmp(name, "function_keep") == 0;
}

void ledger_write_rows(const struct unit *unit, const struct unit_result *result, struct strbuf *out)
{
	for (unsigned line = 0; line < unit->lines_n; line++) {
		const struct db_rows *rows = &result->rows[line];
		bool is_read = strcmp(unit->lines[line].stmt->name, "subject_read") == 0;
		bool is_gate = strncmp(unit->lines[line].stmt->name, "gate_", 5) == 0;
		bool is_job = strncmp(unit->lines[line].stmt->name, "job_", 4) == 0;
		bool is_account = strcmp(unit->lines[line].stmt->name, "account_read_entry") == 0;
		bool is_item = strcmp(unit->lines[line].stmt->name, "item_read_left") == 0;
		bool is_turn = is_of_turn(unit->lines[line].stmt->name);

		for (size_t row = 0; row < rows->n; row++) {
			strbuf_addf(out, "  line %u:", line);
			for (size_t c = 0; c < rows->columns; c++)
				if (is_gate)
					write_gate_cell(unit->lines[line].stmt, c, db_cell(rows, row, c), out);
				else if (is_job)
					write_job_cell(unit->lines[line].stmt, c, db_cell(rows, row, c), out);
				else if ((!is_read || c != 3) && (!(is_account || is_turn) || c != 0) &&
					 (!is_item || c != ITEM_DUE_AT) &&
					 !write_name(unit, db_cell(rows, row, c), out))
					write_cell(db_cell(rows, row, c), out);
			strbuf_add_char(out, '\n');
		}
	}
}
