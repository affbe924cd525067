/*
 * Claiming turns of functions. See function.h for the states.
 *
 * As with jobs (job_claim.c): of all that claim at once, on all nodes, one gets a turn, and nobody waits for another's claim. Of each name
 * that is polled for the turns that are due for longest are looked at, as many as are wanted. A run that has entries is for workers of its
 * version alone.
 */
#include "base/json_string.h"
#include "base/utf8.h"
#include "flow/answer.h"
#include "flow/function_parts.h"
#include "flow/job_work.h"
#include "flow/run_children.h"
#include "flow/shapes.h"
#include "flow/subject_change.h"
#include "task/states.h"

#define TEXT_BYTES_MAX (1u << 20)
#define INPUTS_BYTES_MAX (8 << 20)   /* of all turns in one claim; a single larger one is handed out alone */
#define JOURNALS_BYTES_MAX (8 << 20) /* the same; what does not fit is `more` */

#define PICKS_MAX 16 /* of those with a limit, looked at in one claim */

/* clang-format off */

/* ?2: names. ?3: pairs of name and version, in one text that no other pair has. */
#define TURNS(name) TURNS_OF("= " name)
#define TURNS_OF(name)                                                                                                 \
	" f.workspace = ?1"                                                                                                \
	" AND f.name " name                                                                                                \
	" AND (f.version IS NULL OR length(f.name) || ':' || f.name || f.version IN (SELECT value FROM {list3}))" /* mutant: turn-of-another-version -> " AND ?3 = ?3" */

/* A child hears what its parent has asked before it goes on, and goes no further under who is cancelled: run_children.h, C2. */
#define IS_STOPPED(r, s)                                                                                               \
	"(coalesce(" r ".asked, '') IN ('" CHILD_ASKED_CANCEL "', '" CHILD_ASKED_PAUSE "') OR (coalesce(" r ".child, '') = '" CHILD_OPEN "'"   \
	" AND " s ".status <> 'CANCELLING' AND " RUN_IS_STOPPED(r ".parent") "))"

#define TO "CASE WHEN s.status = 'CANCELLING' THEN 'CANCELLING' ELSE 'RUNNING' END"

/* ?12: this one alone; 0: any.   ?4 wanted   ?5 bytes of inputs   ?6 now   ?7 lease   ?8 op   ?9 worker   ?10 node   ?11 rows [name, version, lease or null] */
DB_STMT(stmt_claim, "function_claim", "tttiiiiittti", "ii",
	"WITH picked AS (SELECT c.value AS id, row_number() OVER (ORDER BY c.key, n.value) AS place FROM"
	" (SELECT value FROM {list2}) n, json_each((SELECT json_group_array(d.subject) FROM (SELECT f.subject FROM hx_function f WHERE"
	TURNS("n.value") " AND f.turn_at <= ?6 AND (?12 = 0 OR f.subject = ?12)"
	" AND NOT EXISTS (SELECT 1 FROM hx_run w JOIN hx_subject o ON o.id = w.subject WHERE w.subject = f.subject AND " IS_STOPPED("w", "o") ")" /* mutant: turn-under-cancel */
	" ORDER BY f.turn_at, f.subject LIMIT ?4) d)) c ORDER BY place LIMIT ?4),"
	" chosen AS (SELECT id, place FROM (SELECT p.id, p.place, sum(length(r.input)) OVER (ORDER BY p.place) - length(r.input) AS before"
	" FROM picked p CROSS JOIN hx_run r ON r.subject = p.id) WHERE before < ?5)"
	" INSERT INTO hx_ids (id) SELECT id FROM chosen ORDER BY place"
	" RETURNING id, (SELECT s.fence + 1 FROM hx_subject s WHERE s.id = hx_ids.id)",
	.pg_sql = "WITH moment AS MATERIALIZED (SELECT hx_now_ms() AS ms),"
		  " picked AS MATERIALIZED (SELECT c.id, c.was, c.bytes, c.name FROM (SELECT DISTINCT value FROM {list2}) n CROSS JOIN LATERAL"
		  " (SELECT s.id, s.status AS was, octet_length(r.input) AS bytes, f.name FROM hx_function f JOIN hx_subject s ON s.id = f.subject"
		  " JOIN hx_run r ON r.subject = f.subject WHERE" TURNS("n.value")
		  " AND f.turn_at <= (SELECT ms FROM moment) AND (?12 = 0 OR f.subject = ?12)"
		  " AND s.owner IS NULL AND NOT " IS_STOPPED("r", "s")
		  " ORDER BY f.turn_at LIMIT ?4 FOR UPDATE OF s, f, r SKIP LOCKED) c LIMIT ?4),"
		  " chosen AS MATERIALIZED (SELECT id, was, coalesce((SELECT (r->>2)::bigint FROM json_array_elements(?11::json) AS t(r)"
		  " WHERE r->>0 = name LIMIT 1), ?7) AS lease_ms, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM picked),"
		  " won AS (UPDATE hx_subject s SET status = " TO ", version = s.version + 1, op = ?8, updated_at = ?6, seq = s.seq + 1,"
		  " fence = s.fence + 1, owner = ?9, until = hx_now_ms() + c.lease_ms,"
		  " head = hx_link(s.head, s.id, s.seq + 1, c.was, " TO ", s.version + 1, s.fence + 1, ?8, ?6, ?10)"
		  " FROM chosen c WHERE s.id = c.id AND c.before < ?5"
		  " RETURNING s.id, s.seq, c.was, s.status, s.version, s.fence, s.op, s.updated_at, s.head, c.lease_ms),"
		  " told AS (" INTO_HISTORY_WORKER " SELECT id, seq, was, status, version, fence, op, ?10, updated_at, head, ?9 FROM won),"
		  " begun AS (UPDATE hx_run r SET started_at = coalesce(r.started_at, ?6) FROM won w WHERE r.subject = w.id RETURNING r.subject),"
		  " taken AS (UPDATE hx_function f SET worker = ?9, lease_ms = w.lease_ms, revision = f.revision + 1, turn_at = NULL, awaits = NULL,"
		  " any_of = 0, turn_version = coalesce(f.version, (SELECT r->>1 FROM json_array_elements(?11::json) AS t(r)"
		  " WHERE r->>0 = f.name LIMIT 1)) FROM won w WHERE f.subject = w.id RETURNING f.subject)"
		  " SELECT id, fence FROM won");

#define LEASE(name, rows, otherwise)                                                                                   \
	"coalesce((SELECT json_extract(value, '$[2]') FROM json_each(" rows ") WHERE json_extract(value, '$[0]') = " name " LIMIT 1), "  \
	otherwise ")"

CLAIMED_STMTS("function_claim", TO, "it", LEASE("(SELECT f.name FROM hx_function f WHERE f.subject = s.id)", "?5", "?4"));

/* Before they are moved. */
DB_STMT(stmt_counted, "function_claim_counted", "", "",
	"INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n) SELECT r.workspace, r.workflow, s.status, " TO ", count(*)"
	" FROM hx_ids c CROSS JOIN hx_subject s ON s.id = c.id JOIN hx_run r ON r.subject = s.id WHERE s.status <> " TO
	" GROUP BY r.workspace, r.workflow, s.status",
	.pg_sql = "");

DB_STMT(stmt_started, "function_claim_started", "i", "",
	"UPDATE hx_run SET started_at = coalesce(started_at, ?1) WHERE subject IN (SELECT id FROM hx_ids)",
	.pg_sql = "");

/* The turn is this worker's, in the version that it polled for. ?3: rows, as above. */
DB_STMT(stmt_begin, "function_claim_begin", "tit", "",
	"UPDATE hx_function SET worker = ?1, lease_ms = " LEASE("hx_function.name", "?3", "?2") ", revision = revision + 1, turn_at = NULL, awaits = NULL, any_of = 0,"
	" turn_version = coalesce(version, (SELECT json_extract(value, '$[1]') FROM json_each(?3)"
	" WHERE json_extract(value, '$[0]') = hx_function.name LIMIT 1)) WHERE subject IN (SELECT id FROM hx_ids)",
	.pg_sql = "");

/* Those with a limit that are due, the oldest first. ?4: so many. */
DB_STMT(stmt_pick, "function_claim_pick", "ttti", "ittii",
	"SELECT f.subject, f.name, w.input, CAST(CASE WHEN w.started_at IS NULL THEN 0 ELSE 1 END AS bigint), o.version FROM hx_function f"
	" JOIN hx_run w ON w.subject = f.subject JOIN hx_subject o ON o.id = f.subject WHERE" TURNS_OF("IN (SELECT value FROM {list2})")
	" AND f.turn_at <= (SELECT hx_now_ms()) AND o.owner IS NULL AND NOT " IS_STOPPED("w", "o")
	" ORDER BY f.turn_at, f.subject LIMIT ?4");

/* In how many ms something may be there for this claim, by time alone. NULL: never. */
DB_STMT(stmt_next, "function_claim_next", "ttt", "i",
	"SELECT min(m.at) - hx_now_ms() FROM (SELECT (SELECT min(f.turn_at) FROM hx_function f WHERE" TURNS("n.value")
	" AND f.turn_at IS NOT NULL) AS at FROM (SELECT value FROM {list2}) n) m");

/* ?1: JSON, rows [id, the seq that the worker knows]. */
#define TURNS_READ(from) "SELECT " FUNCTION_FIELDS(COLUMN_SQL) "hx_now_ms()" from " JOIN hx_subject s ON s.id = f.subject JOIN hx_run r ON r.subject = f.subject"
#define SQLITE_CLAIMED " FROM json_each(?1) c JOIN hx_function f ON f.subject = json_extract(c.value, '$[0]')"
#define PG_CLAIMED " FROM json_array_elements(?1::json) AS t(c) JOIN hx_function f ON f.subject = (c->>0)::bigint"
DB_STMT(stmt_turns, "function_turns", "t", FUNCTION_FIELDS(COLUMN_OUT) "i",
	TURNS_READ(SQLITE_CLAIMED),
	.pg_sql = TURNS_READ(PG_CLAIMED));

/* Their journals: of each what is after the seq that its worker knows, if it counts, up to ?2 bytes; with that seq, and how many there are. */
#define KNOWN(seq) "CASE WHEN " seq " BETWEEN f.cold_seq AND f.seq THEN " seq " ELSE 0 END"
DB_STMT(stmt_pages, "function_pages", "ti", ENTRY_OUT "iii",
	"SELECT " ENTRY_PAGED ", run, known, all_n FROM (SELECT " ENTRY_COLUMNS("e.output") ", e.run, " KNOWN("json_extract(c.value, '$[1]')") " AS known,"
	" count(*) OVER (PARTITION BY e.run) AS all_n, sum(" ENTRY_SIZE ") OVER (PARTITION BY e.run ORDER BY e.seq) - (" ENTRY_SIZE ") AS before"
	SQLITE_CLAIMED " CROSS JOIN hx_entry e ON e.run = f.subject AND e.seq > " KNOWN("json_extract(c.value, '$[1]')") ") p"
	" WHERE before < ?2 ORDER BY run, seq",
	.pg_sql = "SELECT " ENTRY_PAGED ", run, known, all_n FROM (SELECT f.subject AS run, " KNOWN("(c->>1)::bigint") " AS known" PG_CLAIMED ") w"
		  " CROSS JOIN LATERAL (SELECT " ENTRY_COLUMNS("e.output") ", count(*) OVER () AS all_n, sum(" ENTRY_SIZE ") OVER (ORDER BY e.seq)"
		  " - (" ENTRY_SIZE ") AS before FROM hx_entry e WHERE e.run = w.run AND e.seq > w.known) p WHERE before < ?2 ORDER BY run, seq");

/* clang-format on */

enum {
	CLAIM_NEW,
	CLAIM_POLLING,
	CLAIM_CLAIMING,
	CLAIM_PICKING,
	CLAIM_TAKING,
	CLAIM_LINING_UP,
	CLAIM_READING,
	CLAIM_SLEEPING,
	CLAIM_LOADING,
	CLAIM_DONE
};

/* ---- texts ---- */

static size_t characters(struct slice text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += !utf8_continues((unsigned char)text.p[i]);
	return n;
}

static void add_pair(struct strbuf *text, const struct function_polled *polled)
{
	LOCAL_STRBUF(pair, FUNCTION_NAME_BYTES_MAX + FUNCTION_VERSION_BYTES_MAX + 32);

	strbuf_addf(&pair, "%zu:", characters(polled->name));
	strbuf_add_slice(&pair, polled->name);
	strbuf_add_slice(&pair, polled->version);
	json_quote(strbuf_slice(&pair), text);
}

static void add_name(struct strbuf *text, const struct function_polled *polled)
{
	json_quote(polled->name, text);
}

static void add_row(struct strbuf *text, const struct function_polled *polled)
{
	strbuf_add_char(text, '[');
	json_quote(polled->name, text);
	strbuf_add_char(text, ',');
	json_quote(polled->version, text);
	if (polled->lease_ms)
		strbuf_addf(text, ",%lld]", (long long)polled->lease_ms);
	else
		strbuf_add_str(text, ",null]");
}

static bool any(const struct function_polled *polled UNUSED)
{
	return true;
}

static bool is_limited(const struct function_polled *polled)
{
	return function_is_limited(polled->limits);
}

static bool is_plain(const struct function_polled *polled)
{
	return !is_limited(polled);
}

static struct slice list(struct function_claim *c, void (*add)(struct strbuf *, const struct function_polled *),
			 bool (*is)(const struct function_polled *))
{
	struct strbuf text;

	strbuf_init(&text, TEXT_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < c->rq->polled_n; i++) {
		if (!is(&c->rq->polled[i]))
			continue;
		strbuf_add_str(&text, text.n > 1 ? "," : "");
		add(&text, &c->rq->polled[i]);
	}
	strbuf_add_char(&text, ']');
	return arena_keep(c->arena, &text);
}

/* ---- answers ---- */

static void go_claim(struct function_claim *c, const struct answer *answer);

static void take_start(struct function_claim *c, const struct answer *answer)
{
	c->deadline = mono_add_ms(answer->mono, c->rq->wait_ms);
	c->names = list(c, add_name, any);
	c->plain = list(c, add_name, is_plain);
	c->limited = list(c, add_name, is_limited);
	c->pairs = list(c, add_pair, any);
	c->rows = list(c, add_row, any);
	c->has_plain = c->plain.n > 2;
	c->has_limited = c->limited.n > 2;
	c->stamp = flow_stamp(answer);
	if (c->has_limited)
		task_go(&c->task, CLAIM_POLLING);
	else
		go_claim(c, answer); /* which writes it down besides */
	if (c->arena->failed)
		task_end(&c->task, HX_TOO_LARGE);
}

/* Of a run that the worker says it has in memory; 0: it does not. */
static int64_t warm_seq(const struct function_claim_request *rq, int64_t subject)
{
	for (size_t i = 0; i < rq->warm_n; i++)
		if (rq->warm[i].subject == subject)
			return rq->warm[i].seq;
	return 0;
}

static void go_load(struct function_claim *c)
{
	struct strbuf ids;

	strbuf_init(&ids, TEXT_BYTES_MAX);
	for (size_t i = 0; i < c->n; i++)
		strbuf_addf(&ids, "%s[%lld,%lld]", i ? "," : "[", (long long)c->subjects[i],
			    (long long)warm_seq(c->rq, c->subjects[i]));
	strbuf_add_char(&ids, ']');
	c->ids = arena_keep(c->arena, &ids);
	task_go(&c->task, CLAIM_LOADING);
	if (c->arena->failed)
		task_end(&c->task, HX_TOO_LARGE);
}

/* Whatever was claimed is told; with nothing it waits. */
static void end_looking(struct function_claim *c, const struct answer *answer)
{
	if (c->n)
		go_load(c);
	else if (answer->mono.ns >= c->deadline.ns)
		task_end(&c->task, HX_OK);
	else
		task_go(&c->task, CLAIM_READING);
}

/* The one kind of names, then the other: neither keeps the other waiting for ever. */
static void go_on(struct function_claim *c, const struct answer *answer)
{
	bool limited = c->has_limited && (c->limited_first || !c->has_plain) == (c->phase == 0);

	c->stamp = flow_stamp(answer);
	if (c->phase++ == (c->has_limited && c->has_plain ? 2 : 1) || (int64_t)c->n == c->rq->max)
		end_looking(c, answer);
	else
		task_go(&c->task, limited ? CLAIM_PICKING : CLAIM_CLAIMING);
}

static void go_claim(struct function_claim *c, const struct answer *answer)
{
	c->limited_first = answer->id & 1;
	c->phase = 0;
	c->n = 0;
	go_on(c, answer);
	if (c->rq->gave_up && c->rq->gave_up(c->rq->gave_up_context))
		task_end(&c->task, HX_OK);
}

static void take_polled(struct function_claim *c, const struct answer *answer)
{
	c->full = answer->result->verdict == UNIT_LOST;
	c->polled |= answer->result->verdict == UNIT_WON;
	if (c->polled)
		go_claim(c, answer);
	else
		task_end(&c->task, c->full ? HX_TOO_LARGE : HX_STORE_UNAVAILABLE);
}

static void note_claimed(struct function_claim *c, const struct db_rows *rows)
{
	for (size_t i = 0; i < rows->n && c->n < FUNCTION_TURNS_MAX; i++) {
		c->fences[c->n] = db_cell(rows, i, 1)->i;
		c->subjects[c->n++] = db_cell(rows, i, 0)->i;
	}
}

/* What is claimed already is told, whatever comes of the rest. */
static void end_by_store(struct function_claim *c)
{
	if (c->n)
		go_load(c);
	else
		task_end(&c->task, HX_STORE_UNAVAILABLE);
}

static void take_claimed(struct function_claim *c, const struct answer *answer)
{
	bool won = answer->result->verdict == UNIT_WON;

	if (!won && !c->polled) {
		take_polled(c, answer);
		return;
	}
	if (won)
		note_claimed(c, &answer->result->rows[c->polled ? 0 : FUNCTION_POLL_LINES]);
	c->polled |= won;
	if (won)
		go_on(c, answer);
	else
		end_by_store(c);
}

/* ---- with limits ---- */

/* The line that claims, after those about slots and times. */
static size_t claim_line(const struct unit *unit)
{
	size_t line = 0;

	while (unit->lines[line].stmt != &stmt_claim)
		line++;
	return line;
}

static const struct limits *limits_of(const struct function_claim *c, struct slice name)
{
	for (size_t i = 0; i < c->rq->polled_n; i++)
		if (slice_eq(c->rq->polled[i].name, name))
			return c->rq->polled[i].limits;
	return NULL;
}

static void go_pick(struct function_claim *c, const struct answer *answer)
{
	c->stamp = flow_stamp(answer);
	if (c->at < c->picks_n && (int64_t)c->n < c->rq->max)
		task_go(&c->task, CLAIM_TAKING);
	else
		go_on(c, answer);
}

static void take_picked(struct function_claim *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end_by_store(c);
		return;
	}
	c->picks = arena_zalloc(c->arena, (rows->n + 1) * sizeof *c->picks);
	c->picks_n = c->at = 0;
	for (size_t i = 0; c->picks && i < rows->n; i++) {
		struct function_pick *pick = &c->picks[c->picks_n++];

		pick->subject = db_cell(rows, i, 0)->i;
		pick->name = cell_text(db_cell(rows, i, 1), c->arena);
		pick->version = db_cell(rows, i, 4)->i;
		pick->bounds = function_bounds(limits_of(c, pick->name), c->rq->workspace, pick->name,
					       db_cell(rows, i, 2)->s, db_cell(rows, i, 3)->i != 0, c->arena);
	}
	go_pick(c, answer);
	if (c->arena->failed)
		task_end(&c->task, HX_TOO_LARGE);
}

static void build_taking(const struct function_claim *c, struct unit *unit);

static void take_taken(struct function_claim *c, const struct answer *answer)
{
	struct unit unit;
	int64_t full;

	if (answer->result->verdict != UNIT_WON && answer->result->verdict != UNIT_LOST) {
		end_by_store(c);
		return;
	}
	unit_init(&unit, c->stamp.op);
	build_taking(c, &unit);
	if (answer->result->verdict == UNIT_WON)
		note_claimed(c, &answer->result->rows[claim_line(&unit)]);
	full = slot_full(&unit, answer->result);
	c->too_early = full && full == c->picks[c->at].bounds.rate.name;
	if (full) {
		c->stamp = flow_stamp(answer);
		task_go(&c->task, CLAIM_LINING_UP);
		return;
	}
	c->at++;
	go_pick(c, answer);
}

/* Lost: it was moved since. Then it is found again, if it is to be. */
static void take_lined_up(struct function_claim *c, const struct answer *answer)
{
	c->at++;
	go_pick(c, answer);
}

static void take_next(struct function_claim *c, const struct answer *answer)
{
	c->until = work_looks_again(answer, c->deadline);
	task_go(&c->task, CLAIM_SLEEPING);
}

/* Up to which seq a worker that has the run in memory knows its journal; 0: it has to begin from the first entry. */
static int64_t known_seq(const struct function_claim_request *rq, const struct function_row *row)
{
	int64_t seq = warm_seq(rq, row->subject);

	return seq >= row->cold_seq && seq <= row->seq ? seq : 0;
}

/*
 * A turn whose lease was over meanwhile, and that is another's or nobody's now, is not handed out. One that a verb has
 * changed is.
 */
static bool is_still_claimed(const struct function_claim *c, size_t claimed_n, const struct function_row *row)
{
	for (size_t i = 0; i < claimed_n; i++)
		if (c->subjects[i] == row->subject)
			return row->owned &&
			       row->fence == c->fences[i]; /* mutant: turn-still-claimed -> row->fence > 0; */
	return false;
}

enum { PAGE_RUN = ENTRY_OUT_N, PAGE_KNOWN, PAGE_ALL };

static void take_page(struct function_claim *c, struct function_turn *turn, const struct db_rows *rows)
{
	size_t from = 0, to;

	while (from < rows->n && db_cell(rows, from, PAGE_RUN)->i != turn->row.subject)
		from++;
	for (to = from; to < rows->n && db_cell(rows, to, PAGE_RUN)->i == turn->row.subject;)
		to++;
	turn->journal = arena_zalloc(c->arena, (to - from + 1) * sizeof *turn->journal);
	for (size_t i = from; turn->journal && i < to; i++)
		turn->journal[turn->journal_n++] = entry_of_row(rows, i, c->arena);
	if (to == from || !turn->journal)
		return;
	turn->from = db_cell(rows, from, PAGE_KNOWN)->i; /* of the same moment as its journal */
	turn->more = db_cell(rows, from, PAGE_ALL)->i > (int64_t)turn->journal_n;
	/* What has ended since the row was read is told here, and not once more. */
	if (turn->journal[turn->journal_n - 1].seq > turn->row.seq)
		turn->row.seq = turn->journal[turn->journal_n - 1].seq;
}

static void take_loaded(struct function_claim *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0], *pages = &answer->result->rows[1];
	size_t claimed_n = c->n;

	c->n = 0;
	if (answer->result->verdict != UNIT_WON) {
		task_end(&c->task, HX_STORE_UNAVAILABLE);
		return;
	}
	c->turns = arena_zalloc(c->arena, (rows->n + 1) * sizeof *c->turns);
	for (size_t i = 0; c->turns && i < rows->n; i++) {
		struct function_turn *turn = &c->turns[c->n];

		*turn = (struct function_turn){0};
		function_row_take(&rows->cells[i * rows->columns], c->arena, &turn->row);
		turn->from = known_seq(c->rq, &turn->row);
		take_page(c, turn, pages);
		c->n += is_still_claimed(c, claimed_n, &turn->row);
	}
	task_end(&c->task, c->arena->failed ? HX_TOO_LARGE : HX_OK);
}

/* ---- units ---- */

static void build_poll(const struct function_claim *c, struct unit *unit)
{
	unit->op = 0;
	function_poll(unit, c->rq->workspace, c->rows);
}

/* only: this one, or the unit is lost; 0: any, and it may be none. */
static void add_claim(const struct function_claim *c, struct unit *unit, struct slice names, int64_t only)
{
	const struct function_claim_request *rq = c->rq;
	struct db_value at = db_int(c->stamp.at.ms), op = db_int(c->stamp.op), node = db_str(c->stamp.node);
	struct db_value worker = db_text(rq->worker), lease = db_int(rq->lease_ms);

	UNIT_ADD(unit, only ? UNIT_VERDICT : UNIT_ANY, &stmt_claim, db_text(rq->workspace), db_text(names),
		 db_text(c->pairs), db_int(rq->max - (int64_t)c->n), db_int(INPUTS_BYTES_MAX), at, lease, op, worker,
		 node, db_text(c->rows), db_int(only));
	UNIT_ADD(unit, UNIT_ANY, &stmt_tell, op, node, at, worker);
	unit_add(unit, UNIT_ANY, &stmt_counted, 0, NULL);
	UNIT_ADD(unit, UNIT_ANY, &stmt_move, op, at, worker, lease, db_text(c->rows));
	UNIT_ADD(unit, UNIT_ANY, &stmt_started, at);
	UNIT_ADD(unit, UNIT_ANY, &stmt_begin, worker, lease, db_text(c->rows));
	unit_add(unit, UNIT_ANY, &stmt_forget, 0, NULL);
}

static void build_claim(const struct function_claim *c, struct unit *unit)
{
	if (!c->polled)
		function_poll(unit, c->rq->workspace, c->rows);
	add_claim(c, unit, c->plain, /* only= */ 0);
}

static void build_pick(const struct function_claim *c, struct unit *unit)
{
	unit->op = 0;
	UNIT_ADD(unit, UNIT_ANY, &stmt_pick, db_text(c->rq->workspace), db_text(c->limited), db_text(c->pairs),
		 db_int(PICKS_MAX));
}

static void build_taking(const struct function_claim *c, struct unit *unit)
{
	const struct function_pick *pick = &c->picks[c->at];

	bounds_take(unit, &pick->bounds, pick->subject, /* nth= */ 0, c->stamp.at.ms);
	add_claim(c, unit, c->limited, pick->subject);
	function_limit_taken(unit, &pick->bounds, pick->subject);
}

static void build_line_up(const struct function_claim *c, struct unit *unit)
{
	const struct function_pick *pick = &c->picks[c->at];

	function_limit_wait(unit, &pick->bounds, c->too_early, pick->subject, pick->version, c->stamp.at.ms);
}

static void build_next(const struct function_claim *c, struct unit *unit)
{
	unit->op = 0;
	UNIT_ADD(unit, UNIT_ANY, &stmt_next, db_text(c->rq->workspace), db_text(c->names), db_text(c->pairs));
}

static void build_load(const struct function_claim *c, struct unit *unit)
{
	int64_t bytes = JOURNALS_BYTES_MAX / (int64_t)c->n;

	unit->op = 0;
	UNIT_ADD(unit, UNIT_ANY, &stmt_turns, db_text(c->ids));
	UNIT_ADD(unit, UNIT_ANY, &stmt_pages, db_text(c->ids),
		 db_int(bytes < FUNCTION_PAGE_BYTES_MAX ? bytes : FUNCTION_PAGE_BYTES_MAX));
}

static const TASK_STATES(struct function_claim) claim_states[] = {
	[CLAIM_NEW] = {"new", take_start},
	[CLAIM_POLLING] = {"writing down who polls for what", take_polled, build_poll},
	[CLAIM_CLAIMING] = {"claiming", take_claimed, build_claim},
	[CLAIM_PICKING] = {"reading which are due that have a limit", take_picked, build_pick},
	[CLAIM_TAKING] = {"claiming one of them", take_taken, build_taking},
	[CLAIM_LINING_UP] = {"putting it in line", take_lined_up, build_line_up},
	[CLAIM_READING] = {"reading when the next is due", take_next, build_next},
	[CLAIM_SLEEPING] = {"sleeping", go_claim, .until = offsetof(struct function_claim, until),
			    .latest = offsetof(struct function_claim, deadline)},
	[CLAIM_LOADING] = {"reading what it claimed", take_loaded, build_load},
	[CLAIM_DONE] = {"done"},
};

TASK_KIND_STAMPED(claim_kind, "function claim", struct function_claim, claim_states);

void function_claim_init(struct function_claim *claim, const struct function_claim_request *rq, struct arena *arena)
{
	ASSERT(rq->polled_n >= 1 && rq->polled_n <= FUNCTION_POLLED_MAX && rq->max >= 1 &&
	       rq->max <= FUNCTION_TURNS_MAX);
	*claim = (struct function_claim){.rq = rq, .arena = arena};
	task_init(&claim->task, &claim_kind, /* topic= */ 0);
}

size_t function_claim_places(const struct function_claim_request *rq, struct lane_place places[FUNCTION_POLLED_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < rq->polled_n; i++) {
		int64_t stand = function_stand(rq->workspace, rq->polled[i].name);
		size_t k = 0;

		while (k < n && places[k].stand != stand)
			k++;
		if (k == n)
			places[n++] = (struct lane_place){.stand = stand};
	}
	return n;
}

size_t function_claim_took(const struct function_claim *claim, const struct lane_place *place)
{
	size_t n = 0;

	for (size_t i = 0; i < claim->n && claim->turns; i++)
		n += function_stand(claim->rq->workspace, claim->turns[i].row.name) == place->stand;
	return n;
}
