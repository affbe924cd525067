/* The statements of functions: reading one with what a decision needs, and writing the decision. See function.h. */
#include "base/hash.h"
#include "base/json_string.h"
#include "base/json_write.h"
#include "flow/attribute.h"
#include "flow/function.h"
#include "flow/function_parts.h"
#include "flow/run_children.h"
#include "flow/run_count.h"
#include "flow/subject_change.h"

#define EVENTS_MAX 8 /* read at once */
#define KIDS_MAX 16
#define ROWS_BYTES_MAX (160u << 20)

/* clang-format off */

/* ?3: with those above it. */
DB_STMT(stmt_read, "function_read", "iti", FUNCTION_FIELDS(COLUMN_OUT) "iit",
	"SELECT {ord}" FUNCTION_FIELDS(COLUMN_SQL) "hx_now_ms(), CASE WHEN ?3 = 1 THEN " RUN_STOPPED_SQL " END,"
	" CASE WHEN ?3 = 1 THEN " RUN_ABOVE_SQL " END FROM hx_function f JOIN hx_subject s ON s.id = f.subject"
	" JOIN hx_run r ON r.subject = f.subject{join} WHERE f.subject = ?1 AND (?2 = '' OR f.workspace = ?2)");

#define NO_OUTPUT "CAST(NULL AS text)"

/* PostgreSQL, planning while there is nothing, would compare all entries with all units: an order within leaves it one index. */
#define FOR_EACH(select) "SELECT u.ord, x.* FROM {u} CROSS JOIN LATERAL (SELECT " select ") x ORDER BY u.ord, x.i"

#define OPEN_OF(run) ENTRY_COLUMNS(NO_OUTPUT) " FROM hx_entry e WHERE e.run = " run " AND e.ended = 0 ORDER BY e.i"

DB_STMT(stmt_open, "function_read_open", "i", ENTRY_OUT,
	"SELECT " OPEN_OF("?1"),
	.set_sql = FOR_EACH(OPEN_OF("u.p1")));

/* ?2: JSON, labels. */
#define NAMED_OF(run)                                                                                                  \
	" CROSS JOIN LATERAL (SELECT * FROM hx_entry j WHERE j.run = " run " AND j.label = l.value AND j.ended = 1 ORDER BY j.about LIMIT 8) e"
DB_STMT(stmt_named, "function_read_named", "it", ENTRY_OUT,
	"SELECT " ENTRY_COLUMNS(NO_OUTPUT) " FROM hx_entry e WHERE e.run = ?1 AND e.label IN (SELECT value FROM {list2}) AND e.ended = 1",
	.pg_sql = "SELECT " ENTRY_COLUMNS(NO_OUTPUT) " FROM (SELECT DISTINCT value FROM {list2}) l" NAMED_OF("?1"),
	.set_sql = "SELECT u.ord, " ENTRY_COLUMNS(NO_OUTPUT) " FROM {u} CROSS JOIN LATERAL (SELECT DISTINCT value"
		   " FROM json_array_elements_text(u.p2::json) AS v(value)) l" NAMED_OF("u.p1"));

/* What has come for those that are open, and for those that the call asks for (?2: JSON, names). */
DB_STMT(stmt_events, "function_read_events", "iti", "ttti",
	"SELECT v.id, v.name, v.data, v.at FROM hx_run_event v WHERE v.run = ?1 AND v.taken_by IS NULL"
	" AND (v.name IN (SELECT e.awaits FROM hx_entry e WHERE e.run = ?1 AND e.ended = 0) OR v.name IN (SELECT value FROM {list2}))"
	" ORDER BY v.at, v.id LIMIT ?3");

/* The step that its failure named, and the undos that have failed; and how many entries changed after the end of that step. */
DB_STMT(stmt_failed, "function_read_failed", "i", ENTRY_OUT,
	"SELECT " ENTRY_COLUMNS(NO_OUTPUT) " FROM hx_function f JOIN hx_entry e ON e.run = f.subject"
	" AND (e.i = f.failed_at OR (e.about = 'undo' AND e.state = 'failed')) WHERE f.subject = ?1");
DB_STMT(stmt_follow, "function_count_follow", "i", "i",
	"SELECT count(*) FROM hx_function f JOIN hx_entry t ON t.run = f.subject AND t.i = f.failed_at JOIN hx_entry e ON e.run = t.run"
	" AND e.seq > t.seq WHERE f.subject = ?1");

/* Which of these names can be started. */
DB_STMT(stmt_polled, "function_read_polled", "it", "t",
	"SELECT DISTINCT p.name FROM hx_function f JOIN hx_function_poll p ON p.workspace = f.workspace WHERE f.subject = ?1"
	" AND p.name IN (SELECT value FROM {list2}) AND p.at > hx_now_ms() - 2592000000");

DB_STMT(stmt_kids, "function_read_kids", "ii", "itiitt",
	"SELECT e.i, k.child, k.completed_at, k.subject, k.output, k.error FROM hx_entry e JOIN hx_run k ON k.subject = e.child"
	" WHERE e.run = ?1 AND e.ended = 0 AND k.child <> 'open' ORDER BY k.completed_at, e.i LIMIT ?2");

#define PAGE_OF(run, seq, where)                                                                                       \
	"(SELECT " ENTRY_COLUMNS("e.output") ", sum(" ENTRY_SIZE ") OVER (ORDER BY e.seq) - (" ENTRY_SIZE                      \
	") AS before FROM hx_entry e WHERE e.run = " run " AND e.seq > " seq where ") p"
#define PAGE(where) "SELECT " ENTRY_PAGED " FROM " PAGE_OF("?1", "?2", where) " WHERE before < ?3 ORDER BY seq"
#define HAS_ENDED " AND e.state IN ('done', 'failed')"

DB_STMT(stmt_ended, "function_read_ended", "iii", ENTRY_OUT,
	PAGE(HAS_ENDED),
	.set_sql = "SELECT u.ord, " ENTRY_PAGED " FROM {u} CROSS JOIN LATERAL " PAGE_OF("u.p1", "u.p2", HAS_ENDED)
		   " WHERE before < u.p3 ORDER BY u.ord, seq");

DB_STMT(stmt_journal, "function_read_journal", "iii", ENTRY_OUT,
	PAGE(""));

DB_STMT(stmt_count, "function_count_journal", "ii", "i",
	"SELECT count(*) FROM hx_entry e WHERE e.run = ?1 AND e.seq > ?2");

#define STEPS_OF(run)                                                                                                  \
	ENTRY_COLUMNS("e.output") ", (SELECT w.completed_at FROM hx_entry w WHERE w.run = e.run AND w.label = e.label"         \
	" AND w.about = 'undo' AND w.state = 'done') FROM hx_entry e WHERE e.about = '' AND e.run = " run " ORDER BY e.i"
DB_STMT(stmt_steps, "function_read_steps", "i", ENTRY_OUT "i",
	"SELECT " STEPS_OF("?1"),
	.set_sql = FOR_EACH(STEPS_OF("u.p1")));
DB_STMT(stmt_key_steps, "function_read_key_steps", "tt", ENTRY_OUT "i",
	"SELECT " STEPS_OF("(SELECT " RUN_OF_ALIAS("k") " FROM hx_run k WHERE k.workspace = ?1 AND k.run_key = ?2)"));

/*
 * ?2: as it was read. Whatever else has changed the function, its journal or its subject has raised it; so the lines after it decide
 * nothing, and many units are one statement on PostgreSQL. ?9: the subject's version, which says the same once more. ?4: WRITE_TAKES,
 * WRITE_ANY_OF.
 */
DB_STMT(stmt_write, "function_write", "iiiiiittiiitiiti", "",
	"UPDATE hx_function SET revision = revision + 1, seq = ?3, taken_seq = CASE WHEN ?4 IN (1, 3) THEN ?3 ELSE taken_seq END,"
	" entries_n = ?5, bytes = ?6, body_hash = ?7, awaits = ?8, any_of = CASE WHEN ?4 >= 2 THEN 1 ELSE 0 END, lapses = ?10,"
	" cold_seq = ?11, version = ?12, turn_at = ?13, due_at = ?14, held = ?15, failed_at = ?16{from} WHERE subject = ?1"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.version = ?9)"
	" AND revision = ?2", /* mutant: function-revision -> , */
	.counted = true);

#define ENTRY_VALUES(run, pick, number)                                                                                \
	" SELECT " run ", " number("0") ", " pick("1") ", " pick("2") ", " pick("3") ", " number("4") ", " pick("5") ", " number("6") ", " pick("7")      \
	", " number("8") ", " number("9") ", " number("10") ", " pick("11") ", " pick("12") ", " pick("13") ", " pick("14") ", " pick("15")          \
	", " number("16") ", " number("17") ", " number("18") ", " number("19")
#define INTO_ENTRY                                                                                                     \
	"INSERT INTO hx_entry (run, i, kind, about, name, n, label, seq, state, ended, attempt, redo, policy, detail, output, error,"  \
	" awaits, wake_at, child, started_at, completed_at)"
#define ENTRY_CHANGED                                                                                                  \
	" ON CONFLICT (run, i) DO UPDATE SET seq = excluded.seq, state = excluded.state, ended = excluded.ended,"              \
	" attempt = excluded.attempt, redo = excluded.redo, policy = excluded.policy, detail = excluded.detail, output = excluded.output,"  \
	" error = excluded.error, wake_at = excluded.wake_at, completed_at = excluded.completed_at"

DB_STMT(stmt_entries, "function_write_entries", "it", "",
	INTO_ENTRY ENTRY_VALUES("?1", SQLITE_PICK, SQLITE_PICK) " FROM json_each(?2) WHERE true" ENTRY_CHANGED,
	.pg_sql = INTO_ENTRY ENTRY_VALUES("?1", PG_PICK, PG_NUMBER) " FROM jsonb_array_elements(?2::jsonb) AS t(r)" ENTRY_CHANGED,
	.set_sql = INTO_ENTRY ENTRY_VALUES("u.p1", PG_PICK, PG_NUMBER) " FROM {u}, jsonb_array_elements(u.p2::jsonb) AS t(r)" ENTRY_CHANGED);

DB_STMT(stmt_take_event, "function_take_event", "itti", "",
	"UPDATE hx_run_event SET taken_by = ?4 WHERE run = ?1 AND name = ?2 AND id = ?3 AND taken_by IS NULL");

DB_STMT(stmt_came, "function_event_came", "ittti", "",
	INTO_EVENT " VALUES (?1, ?2, ?3, ?4, ?5)");

/* ?2: JSON, places of entries. One line for all of them: a call may drop as many as it has entries. */
DB_STMT(stmt_give_back, "function_give_back", "it", "",
	"UPDATE hx_run_event SET taken_by = NULL WHERE run = ?1 AND CAST(taken_by AS text) IN (SELECT value FROM {list2})");

/* ?3 and ?4: NULL, as they are. ?8: it has ended. ?10: until when it is kept; NULL: as it is. */
DB_STMT(stmt_run, "function_write_run", "itttiittii", "",
	"UPDATE hx_run SET awaits = ?2, output = coalesce(?3, output), error = CASE WHEN ?5 = 1 THEN NULL ELSE coalesce(?4, error) END,"
	" completed_at = CASE WHEN ?8 IS NOT NULL THEN ?6 END, step_status = ?7, times_out_at = coalesce(?9, times_out_at),"
	" keep_until = CASE WHEN ?8 IS NOT NULL THEN coalesce(?10, keep_until) END{from}"
	" WHERE subject = ?1");

/* The turn goes on: its lease is never shortened. */
DB_STMT(stmt_keep, "function_keep", "iitti", "i",
	"UPDATE hx_subject SET until = CASE WHEN until > hx_now_ms() + ?5 THEN until ELSE hx_now_ms() + ?5 END{from} WHERE id = ?1"
	" AND fence = ?2" /* mutant: function-beat-fence -> " AND ?2 = ?2" */
	" AND status = ?3"
	" AND owner = ?4"
	" RETURNING {ord}until",
	.fenced = true);

/* ?8: nobody has the turn any more. ?9: only if its time is over. */
#define MOVE                                                                                                           \
	CHANGE("fence")                                                                                                        \
	", owner = CASE WHEN ?8 = 1 THEN NULL ELSE owner END, until = CASE WHEN ?8 = 1 THEN NULL ELSE until END{from}"         \
	" WHERE id = ?7" IF_PAST " AND version = ?3 AND status = ?2"
#define IF_PAST                                                                                                        \
	" AND (?9 = 0 OR until <= hx_now_ms())" /* mutant: function-lapse-until -> " AND ?9 >= 0" */
DB_STMT(stmt_move, "function_move", "ttiiitiii", "ii", CHANGE_FORMS(MOVE, "version, fence"));

/* clang-format on */

enum {
	OUT_I,
	OUT_KIND,
	OUT_NAME,
	OUT_N,
	OUT_SEQ,
	OUT_STATE,
	OUT_ATTEMPT,
	OUT_REDO,
	OUT_POLICY,
	OUT_DETAIL,
	OUT_OUTPUT,
	OUT_ERROR,
	OUT_AWAITS,
	OUT_WAKE_AT,
	OUT_CHILD,
	OUT_STARTED_AT,
	OUT_COMPLETED_AT
};

/* Lines of function_read(); and of one that is lean. */
enum { LINE_ROW, LINE_OPEN, LINE_KIDS, LINE_EVENTS, LINE_NAMED, LINE_POLLED, LINE_ENDED, LINE_FOLLOW = LINE_ENDED };
enum { LEAN_NAMED = 1, LEAN_ENDED };

enum { WRITE_TAKES = 1, WRITE_ANY_OF = 2 };

int64_t function_kind(void)
{
	return subject_kind("function", "");
}

int64_t function_stand(struct slice workspace, struct slice name)
{
	uint64_t hash = hash_bytes(2, workspace.p, workspace.n);

	return (int64_t)hash_bytes(hash + 3, name.p, name.n);
}

/* Without room for one more, whoever waits finds it by its poll. */
void function_offer(struct unit *unit, struct slice workspace, struct slice name, int64_t n)
{
	if (!unit_offer(unit, function_stand(workspace, name), (uint32_t)n))
		unit_wake(unit, FUNCTION_TOPIC);
}

/* ---- reading ---- */

void entry_write_label(struct slice name, int64_t n, struct strbuf *text)
{
	strbuf_addf(text, "%lld:", (long long)n);
	strbuf_add_slice(text, name);
}

int64_t function_follows_n(const struct unit_result *result)
{
	return db_cell(&result->rows[LINE_FOLLOW], 0, 0)->i;
}

static struct db_value list_of(struct slice json)
{
	return db_text(json.p ? json : slice_str("[]"));
}

void function_read(struct unit *unit, struct slice workspace, int64_t subject, const struct function_named *named,
		   int64_t ended_after)
{
	struct db_value id = db_int(subject);

	UNIT_ADD(unit, UNIT_ANY, &stmt_read, id, db_text(workspace.p ? workspace : slice_str("")),
		 db_int(named->children.n > 2)); /* there is one */
	if (named->lean) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_named, id, list_of(named->labels));
		UNIT_ADD(unit, UNIT_ANY, &stmt_ended, id, db_int(ended_after), db_int(2 * FUNCTION_BYTES_MAX));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_open, id);
	UNIT_ADD(unit, UNIT_ANY, &stmt_kids, id, db_int(KIDS_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_events, id, list_of(named->asked), db_int(EVENTS_MAX));
	if (named->failed)
		UNIT_ADD(unit, UNIT_ANY, &stmt_failed, id);
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_named, id, list_of(named->labels));
	UNIT_ADD(unit, UNIT_ANY, &stmt_polled, id, list_of(named->children));
	if (named->failed)
		UNIT_ADD(unit, UNIT_ANY, &stmt_follow, id);
	else if (ended_after >= 0)
		UNIT_ADD(unit, UNIT_ANY, &stmt_ended, id, db_int(ended_after), db_int(2 * FUNCTION_BYTES_MAX));
}

static int place_of(struct slice word, const char *const words[])
{
	int place = 0;

	while (words[place] && !slice_is(word, words[place]))
		place++;
	ASSERT(words[place]);
	return place;
}

int64_t entry_bytes(const struct function_entry *e)
{
	return FUNCTION_ENTRY_BYTES + (int64_t)(e->name.n + e->detail.n + e->output.n + e->error.n);
}

struct function_entry entry_of_row(const struct db_rows *rows, size_t row, struct arena *arena)
{
	const struct db_value *cells = &rows->cells[row * rows->columns];
	struct function_entry e = {
		.i = cells[OUT_I].i,
		.n = cells[OUT_N].i,
		.seq = cells[OUT_SEQ].i,
		.attempt = cells[OUT_ATTEMPT].i,
		.redo = cells[OUT_REDO].i,
		.kind = (enum entry_kind)place_of(cells[OUT_KIND].s, entry_kinds),
		.state = (enum entry_state)place_of(cells[OUT_STATE].s, entry_states),
		.name = cell_text(&cells[OUT_NAME], arena),
		.policy = cell_text(&cells[OUT_POLICY], arena),
		.detail = cell_text(&cells[OUT_DETAIL], arena),
		.output = cell_text(&cells[OUT_OUTPUT], arena),
		.error = cell_text(&cells[OUT_ERROR], arena),
		.awaits = cell_text(&cells[OUT_AWAITS], arena),
		.wake_at = cell_int(&cells[OUT_WAKE_AT]),
		.child = cell_int(&cells[OUT_CHILD]),
		.started_at = cells[OUT_STARTED_AT].i,
		.completed_at = cell_int(&cells[OUT_COMPLETED_AT]),
	};

	e.bytes_before = entry_bytes(&e);
	return e;
}

static void take_entries(struct function_work *w, const struct db_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct function_entry *e = arena_alloc(w->arena, sizeof *e);

		if (!e)
			return;
		*e = entry_of_row(rows, i, w->arena);
		w->entries[w->n++] = e;
	}
}

static void take_events(struct function_work *w, const struct db_rows *rows)
{
	w->events = arena_zalloc(w->arena, (rows->n + 1) * sizeof *w->events);
	for (size_t i = 0; w->events && i < rows->n; i++)
		w->events[w->events_n++] = (struct function_event){.id = cell_text(db_cell(rows, i, 0), w->arena),
								   .name = cell_text(db_cell(rows, i, 1), w->arena),
								   .data = cell_text(db_cell(rows, i, 2), w->arena),
								   .at = db_cell(rows, i, 3)->i};
}

static void take_kids(struct function_work *w, const struct db_rows *rows)
{
	w->kids = arena_zalloc(w->arena, (rows->n + 1) * sizeof *w->kids);
	for (size_t i = 0; w->kids && i < rows->n; i++)
		w->kids[w->kids_n++] = (struct function_kid){
			.i = db_cell(rows, i, 0)->i,
			.state = cell_text(db_cell(rows, i, 1), w->arena),
			.completed_at = cell_int(db_cell(rows, i, 2)),
			.output = cell_text(db_cell(rows, i, 4), w->arena),
			.error = cell_text(db_cell(rows, i, 5), w->arena),
		};
}

static void take_polled(struct function_work *w, const struct db_rows *rows)
{
	w->polled = arena_zalloc(w->arena, (rows->n + 1) * sizeof *w->polled);
	for (size_t i = 0; w->polled && i < rows->n; i++)
		w->polled[w->polled_n++] = cell_text(db_cell(rows, i, 0), w->arena);
}

static void take_ended(struct function_work *w, const struct db_rows *rows)
{
	w->ended = arena_zalloc(w->arena, (rows->n + 1) * sizeof *w->ended);
	for (size_t i = 0; w->ended && i < rows->n; i++)
		w->ended[w->ended_n++] = entry_of_row(rows, i, w->arena);
}

void function_row_take(const struct db_value *cells, struct arena *arena, struct function_row *row)
{
	FUNCTION_FIELDS(COLUMN_TAKE);
	row->now = cells[FN_NOW].i;
	row->status = run_status_of(cells[FN_STATUS].s);
	ASSERT(row->status);
}

/* What a decision begins with: everything as it is. */
static void begin_as_it_is(struct function_work *w)
{
	const struct function_row *row = &w->row;

	w->to = row->status;
	w->seq = row->seq;
	w->entries_n = row->entries_n;
	w->bytes = row->bytes;
	w->lapses = row->lapses;
	w->cold_seq = row->cold_seq;
	w->turn_at = row->turn_at;
	w->due_at = row->due_at;
	w->failed_at = row->failed_at;
	w->awaits = row->awaits;
	w->any_of = row->any_of;
	w->held = row->held;
	w->version = row->version;
}

/* All that is open, of which a lean read has nothing. */
static void take_open(struct function_work *w, const struct db_rows rows[])
{
	take_entries(w, &rows[LINE_OPEN]);
	take_entries(w, &rows[LINE_NAMED]);
	work_index(w);
	take_events(w, &rows[LINE_EVENTS]);
	take_kids(w, &rows[LINE_KIDS]);
	take_polled(w, &rows[LINE_POLLED]);
	w->cut = w->events_n == EVENTS_MAX || w->kids_n == KIDS_MAX;
}

enum hx_code function_work_take(const struct unit_result *result, size_t more, enum function_reading reading,
				struct arena *arena, struct function_work *ret_work)
{
	const struct db_rows *rows = result->rows;
	struct function_work *w = ret_work;
	bool lean = reading == FUNCTION_LEAN;

	*w = (struct function_work){.arena = arena, .code = HX_OK};
	if (rows[LINE_ROW].n == 0)
		return HX_NOT_FOUND;
	function_row_take(rows[LINE_ROW].cells, arena, &w->row);
	w->row.stopped = cell_int(&rows[LINE_ROW].cells[FN_STOPPED]) != 0;
	run_above_take(&rows[LINE_ROW].cells[FN_ABOVE], w->row.above);
	begin_as_it_is(w);
	w->room = (lean ? rows[LEAN_NAMED].n : rows[LINE_OPEN].n + rows[LINE_NAMED].n) + more;
	w->entries = arena_zalloc(arena, (w->room + 1) * sizeof *w->entries);
	if (!w->entries)
		return HX_TOO_LARGE;
	if (lean) {
		take_entries(w, &rows[LEAN_NAMED]);
		work_index(w);
	} else {
		take_open(w, rows);
	}
	if (reading != FUNCTION_STATE)
		take_ended(w, &rows[lean ? LEAN_ENDED : LINE_ENDED]);
	if (arena->failed)
		return HX_TOO_LARGE;
	return w->row.expired ? HX_RUN_EXPIRED : HX_OK;
}

/* ---- writing ---- */

static struct db_value number(int64_t value)
{
	return value ? db_int(value) : db_null();
}

static void add_number(struct strbuf *text, int64_t value)
{
	if (value)
		strbuf_addf(text, ",%lld", (long long)value);
	else
		strbuf_add_str(text, ",null");
}

static void add_entry(struct strbuf *text, const struct function_entry *e)
{
	LOCAL_STRBUF(label, FUNCTION_NAME_BYTES_MAX + 32);

	entry_write_label(e->name, e->n, &label);
	strbuf_addf(text, "%s[%lld,\"%s\",\"%s\"", text->n == 1 ? "" : ",", (long long)e->i, entry_kinds[e->kind],
		    entry_is_about(e->kind) ? entry_kinds[e->kind] : "");
	json_next_text(text, e->name);
	strbuf_addf(text, ",%lld", (long long)e->n);
	json_next_text(text, strbuf_slice(&label));
	strbuf_addf(text, ",%lld,\"%s\",%d,%lld,%lld", (long long)e->seq, entry_states[e->state],
		    entry_has_ended(e->state), (long long)e->attempt, (long long)e->redo);
	json_next_text(text, e->policy);
	json_next_text(text, e->detail);
	json_next_text(text, e->output);
	json_next_text(text, e->error);
	json_next_text(text, e->awaits);
	add_number(text, e->wake_at);
	add_number(text, e->child);
	strbuf_addf(text, ",%lld", (long long)e->started_at);
	add_number(text, e->completed_at);
	strbuf_add_char(text, ']');
}

int64_t work_bytes(const struct function_work *w)
{
	int64_t bytes = w->row.bytes;

	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->changed)
			bytes += entry_bytes(w->entries[i]) - w->entries[i]->bytes_before;
	return bytes;
}

static bool gives_event_back(const struct function_entry *e)
{
	return e->event_back;
}

bool function_prepare(struct function_work *w)
{
	struct strbuf text;
	bool any = false;

	w->bytes = work_bytes(w);
	work_note_ended(w);
	strbuf_init(&text, ROWS_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->changed) {
			add_entry(&text, w->entries[i]);
			any = true;
		}
	strbuf_add_char(&text, ']');
	if (any)
		w->rows = arena_keep(w->arena, &text);
	else
		strbuf_release(&text);
	if (w->gives_back)
		w->events_back = work_places(w, gives_event_back);
	function_prepare_kids(w);
	function_describe(w);
	return !w->arena->failed;
}

static void add_keep(struct unit *unit, enum unit_rule rule, const struct function_row *row, int64_t lease_ms)
{
	unit_touch(unit, row->subject);
	UNIT_ADD(unit, rule, &stmt_keep, db_int(row->subject), db_int(row->fence), db_str(row->status),
		 db_text(row->worker), db_int(lease_ms));
}

void function_keep(struct unit *unit, const struct function_row *row, int64_t lease_ms)
{
	add_keep(unit, UNIT_VERDICT, row, lease_ms);
}

/* After the line that decides; but that a lease is over is asked here, since a heartbeat raises no revision. */
static void add_subject(struct unit *unit, const struct stamp *stamp, const struct function_work *w)
{
	const struct function_row *row = &w->row;

	if (!w->shifts && !w->frees && row->owned && strcmp(w->to, row->status) == 0) {
		add_keep(unit, UNIT_ANY, row, w->lease_ms);
		return;
	}
	DEBUG_ASSERT(ways_lead(&run_ways, NULL, slice_str(row->status), slice_str(w->to)));
	UNIT_ADD(unit, w->if_past ? UNIT_VERDICT : UNIT_ANY, &stmt_move, db_str(w->to), db_str(row->status),
		 db_int(row->row_version), db_int(stamp->op), db_int(stamp->at.ms), db_str(stamp->node),
		 db_int(row->subject), db_int(w->frees), db_int(w->if_past));
	subject_add_history(unit, stamp, row->subject, row->status);
	run_count_changed_of(unit, row->subject, row->status, w->to);
	if (w->lapses_now)
		subject_add_note(unit, row->subject, &(struct history_note){.reason = slice_str(SUBJECT_LAPSED)});
	unit_wake(unit, row->subject);
}

/* 0: as the configuration says. A tree is kept by its root. */
static int64_t keep_until(const struct function_work *w, int64_t from_ms)
{
	int64_t keep_ms = w->row.parent ? 0 : w->row.keep_ms;

	if (!keep_ms)
		return 0;
	return keep_ms < INT64_MAX - from_ms ? from_ms + keep_ms : INT64_MAX;
}

/* As those who make children, or tell their parent, know it. */
static struct run_row as_run(const struct function_row *row)
{
	struct run_row run = {.subject = row->subject, .parent = row->parent, .parent_n = row->parent_n};

	memcpy(run.above, row->above, sizeof run.above);
	return run;
}

static void add_run(struct unit *unit, const struct stamp *stamp, const struct function_work *w)
{
	bool ended = run_is_terminal(w->to);

	UNIT_ADD(unit, UNIT_ANY, &stmt_run, db_int(w->row.subject), db_optional(w->run_awaits), db_optional(w->output),
		 db_optional(w->error), db_int(w->clears_error), db_int(stamp->at.ms),
		 w->step_status ? db_str(w->step_status) : db_null(), ended ? db_str("") : db_null(),
		 number(w->times_out_at), number(ended ? keep_until(w, stamp->at.ms) : 0));
	if (ended)
		unit_wake(unit, subject_end_topic(w->row.subject));
	if (ended && w->row.parent) {
		struct run_row run = as_run(&w->row);

		run_child_ended(unit, &run, w->to);
	}
}

static void add_events(struct unit *unit, const struct function_work *w)
{
	struct db_value id = db_int(w->row.subject);
	const struct function_event *came = w->new_event;

	if (came)
		UNIT_ADD(unit, UNIT_ANY, &stmt_came, id, db_text(came->id), db_text(came->name), db_text(came->data),
			 db_int(came->at));
	for (size_t i = 0; i < w->n; i++) {
		const struct function_entry *e = w->entries[i];

		if (e->event_id.p)
			UNIT_ADD(unit, UNIT_VERDICT, &stmt_take_event, id, db_text(e->awaits), db_text(e->event_id),
				 db_int(e->i));
	}
	if (w->events_back.p)
		UNIT_ADD(unit, UNIT_ANY, &stmt_give_back, id, db_text(w->events_back));
}

void function_write(struct unit *unit, const struct stamp *stamp, const struct function_work *w)
{
	const struct function_row *row = &w->row;
	struct db_value id = db_int(row->subject);
	bool moves = strcmp(w->to, row->status) != 0 || w->frees || w->shifts;

	unit_touch(unit, row->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_write, id, db_int(row->revision), db_int(w->seq),
		 db_int((w->taken ? WRITE_TAKES : 0) | (w->any_of ? WRITE_ANY_OF : 0)), db_int(w->entries_n),
		 db_int(w->bytes),
		 db_optional(w->taken        ? w->hash
			     : w->lapses_now ? slice_of(NULL, 0)
					     : row->body_hash),
		 db_optional(w->awaits), db_int(row->row_version), db_int(w->lapses), db_int(w->cold_seq),
		 db_optional(w->version), number(w->turn_at), number(w->due_at), db_optional(w->held),
		 w->failed_at < 0 ? db_null() : db_int(w->failed_at));
	if (moves || row->owned)
		add_subject(unit, stamp, w);
	if (w->rows.p)
		UNIT_ADD(unit, UNIT_ANY, &stmt_entries, id, db_text(w->rows));
	add_events(unit, w);
	if (w->kids_made.p && row->parent) {
		struct run_row run = as_run(row);

		run_children_guard(unit, &run); /* mutant: function-bears-unheld -> ; */
	}
	function_write_kids(unit, stamp, w);
	if (w->describes)
		attributes_of_run_set(unit, row->subject, w->attributes); /* mutant: function-not-found-by -> ; */
	if (!w->stays && (moves || w->output.p || w->error.p || !slice_eq(w->run_awaits, row->run_awaits)))
		add_run(unit, stamp, w);
	if (w->turn_at)
		function_offer(unit, row->workspace, row->name, 1);
	function_limit_leave(unit, w);
	if (w->due_at)
		unit_wake(unit, FUNCTION_TOPIC);
}

/* ---- the rest ---- */

void function_read_journal(struct unit *unit, int64_t subject, int64_t after, int64_t bytes_max)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_journal, db_int(subject), db_int(after), db_int(bytes_max));
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_int(subject), db_int(after));
}

void function_read_steps(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_steps, db_int(subject));
}

void function_read_key_steps(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_key_steps, db_text(workspace), db_text(key));
}
