/*
 * Claiming due jobs. See job_work.h for the states.
 *
 * A queue may hold a hundred thousand jobs, most of them not due, so a claim never looks through it. It goes by grades (jobs of
 * one bound and one priority, see the schema): from each grade of each queue to the next by the index, the first job of each
 * tells whether any is due, and only of the best ones that are, at most as many jobs as are wanted are looked at.
 *
 *   grades ─▶ heads (the first job of each) ─▶ rooms (due, and how many may be claimed) ─▶ best ─▶ picked ─▶ chosen
 *
 * Where max_in_flight bounds a queue, one claim takes the jobs of one grade only: what is left of the bound is then a
 * LIMIT, however many bounds there are in that queue at a time.
 *
 * PostgreSQL does it in one statement. The rows are locked with SKIP LOCKED one by one as they are picked, so nobody waits and
 * nobody holds what it does not take. A row that was changed since the statement began is looked at again as it is now,
 * which is why the guard stands on the locked rows themselves: status and owner of the subject, due_at of the job. The
 * room of a bounded queue is hx_job_room(), which knows what all nodes have claimed there up to now.
 *
 * A queue with limits is picked from first, and claimed job by job: each has a key, and the lock of it. See job_limit.c.
 *
 * SQLite has one writer. There the first line chooses and remembers (hx_ids), and those after it write the history, move the
 * subjects and start the jobs.
 */
#include "base/json_string.h"
#include "flow/answer.h"
#include "flow/job_parts.h"
#include "flow/shapes.h"
#include "flow/subject_change.h"
#include "task/states.h"

#define QUEUES_BYTES_MAX 65536

/* clang-format off */

/* Jobs of a queue that wait, whether due or not. ?1 is the workspace. */
#define WAITING(queue)                                                                                                 \
	" FROM hx_job j WHERE j.queue = " queue                                                                        \
	" AND j.workspace = ?1"      /* mutant: claim-workspace */                                                     \
	" AND j.due_at IS NOT NULL"  /* mutant: claim-waiting */                                                       \
	" AND j.queue <> 'after-effects'" /* mutant: claim-after-effect -> " AND 1 = 1" */

/* ?2 are the queues; a name that comes twice counts once. */
#define HEADS                                                                                                          \
	" grades(queue, grade) AS (SELECT q.value, (SELECT j.grade" WAITING("q.value")                                 \
	" ORDER BY j.grade LIMIT 1) FROM {list2} UNION SELECT g.queue, (SELECT j.grade" WAITING("g.queue")           \
	" AND j.grade > g.grade ORDER BY j.grade LIMIT 1) FROM grades g WHERE g.grade IS NOT NULL),"                   \
	" heads AS (SELECT g.queue, g.grade, g.grade / 4096 AS bound, g.grade % 4096 AS level, (SELECT j.due_at"       \
	WAITING("g.queue") " AND j.grade = g.grade ORDER BY j.due_at LIMIT 1) AS head_at"                              \
	" FROM grades g WHERE g.grade IS NOT NULL)"

#define IN_FLIGHT                                                                                                      \
	"(SELECT count(*) FROM hx_job j WHERE j.workspace = ?1 AND j.queue = h.queue AND j.in_flight_max > 0"             \
	" AND j.due_at IS NULL AND j.ended_at IS NULL)" /* mutant: claim-in-flight -> " AND 1 = 0)" */

/* ?3 is how many are wanted. */
#define BEST(room, now)                                                                                                \
	" rooms AS (SELECT h.queue, h.grade, h.bound, h.level, h.head_at,"                                             \
	" CASE WHEN h.bound = 0 THEN ?3 ELSE " room " END AS room FROM heads h WHERE h.head_at <= " now "),"           \
	" best AS (SELECT r.queue, r.grade, r.bound, r.level, r.head_at, r.room, row_number() OVER"                    \
	" (PARTITION BY r.queue, r.bound > 0 ORDER BY r.level, r.head_at) AS nth FROM rooms r WHERE r.room > 0)"

/* ?1 workspace   ?2 queues   ?3 wanted   ?4 bytes of payload   ?5 now. only: a condition on the job */
#define SQLITE_CHOSEN(only)                                                                                                  \
	"WITH RECURSIVE" HEADS "," BEST("h.bound - " IN_FLIGHT, "?5") ","                                \
	" picked AS (SELECT c.value AS id, row_number() OVER (ORDER BY b.level, b.head_at, b.queue, c.key) AS place"   \
	" FROM best b, json_each((SELECT json_group_array(d.subject) FROM (SELECT j.subject" WAITING("b.queue")        \
	" AND j.grade = b.grade"                                                                                       \
	" AND j.due_at <= ?5" /* mutant: claim-due */                                                                  \
	only " ORDER BY j.due_at, j.subject LIMIT ?3) d)) c"                                                                \
	" WHERE (b.bound = 0 OR b.nth = 1)" /* mutant: claim-one-grade -> " WHERE 1 = 1" */                            \
	" AND c.key < b.room" /* mutant: claim-room */                                                                 \
	" ORDER BY place LIMIT ?3),"                                                                                   \
	" chosen AS (SELECT id, place FROM (SELECT p.id, p.place, sum(length(j.payload)) OVER (ORDER BY p.place)"      \
	" - length(j.payload) AS before FROM picked p CROSS JOIN hx_job j ON j.subject = p.id) WHERE before < ?4)"

#define OF_JOB(column) " (SELECT " column " FROM hx_job j WHERE j.subject = hx_ids.id)"
#define TRACE_OF_RUN "(SELECT r.trace FROM hx_run r WHERE r.subject = j.run)"

#define ONLY " AND (?10 = 0 OR j.subject = ?10)"

/* ?1 to ?5 as above   ?6 lease   ?7 op   ?8 owner   ?9 node   ?10 this one alone; 0: any. */
DB_STMT(stmt_claim, "job_claim", "ttiiiiitti", "itttiiit",
	SQLITE_CHOSEN(ONLY)
	" INSERT INTO hx_ids (id) SELECT id FROM chosen ORDER BY place RETURNING id,"
	OF_JOB("queue") "," OF_JOB("payload") "," OF_JOB("effect_key") "," OF_JOB("attempt + 1") ","
	" (SELECT fence + 1 FROM hx_subject s WHERE s.id = hx_ids.id), ?5 + ?6," OF_JOB(TRACE_OF_RUN),
	.pg_sql = "WITH RECURSIVE moment AS MATERIALIZED (SELECT hx_now_ms() AS ms),"
		  HEADS "," BEST("hx_job_room(?1, h.queue, h.bound)", "(SELECT ms FROM moment)") ","
		  " picked AS MATERIALIZED (SELECT c.id, c.was, c.bytes FROM"
		  " (SELECT * FROM best WHERE bound = 0 OR nth = 1 ORDER BY level, head_at, queue) b CROSS JOIN LATERAL"
		  " (SELECT s.id, s.status AS was, octet_length(j.payload) AS bytes FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
		  " WHERE j.workspace = ?1 AND j.queue = b.queue AND j.grade = b.grade AND j.queue <> 'after-effects'"
		  " AND j.due_at <= (SELECT ms FROM moment)" /* mutant: claim-locked-due */
		  ONLY
		  " AND s.status IN ('AVAILABLE', 'RETRYING')" /* mutant: claim-locked-status */
		  " AND s.owner IS NULL" /* mutant: claim-locked-owner */
		  " ORDER BY j.due_at LIMIT b.room FOR UPDATE OF s, j SKIP LOCKED) c LIMIT ?3),"
		  " chosen AS MATERIALIZED (SELECT id, was, row_number() OVER () AS place,"
		  " sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM picked),"
		  " won AS (UPDATE hx_subject s SET status = 'RUNNING', version = s.version + 1, op = ?7, updated_at = ?5,"
		  " seq = s.seq + 1, fence = s.fence + 1, owner = ?8, until = hx_now_ms() + ?6,"
		  " head = hx_link(s.head, s.id, s.seq + 1, c.was, 'RUNNING', s.version + 1, s.fence + 1, ?7, ?5, ?9) FROM chosen c WHERE s.id = c.id AND c.before < ?4"
		  " RETURNING s.id, s.seq, c.was, s.status, s.version, s.fence, s.op, s.updated_at, s.head, s.until, c.place),"
		  " told AS (" INTO_HISTORY_WORKER
		  " SELECT id, seq, was, status, version, fence, op, ?9, updated_at, head, ?8 FROM won),"
		  " begun AS (UPDATE hx_job j SET due_at = NULL, attempt = j.attempt + 1 FROM won w WHERE j.subject = w.id"
		  " RETURNING j.subject, j.queue, j.payload, j.effect_key, j.attempt, w.fence, w.until, w.place,"
		  " " TRACE_OF_RUN " AS trace)"
		  " SELECT subject, queue, payload, effect_key, attempt, fence, until, trace FROM begun ORDER BY place");

CLAIMED_STMTS("job_claim", "'RUNNING'", "i", "?4");

DB_STMT(stmt_start, "job_claim_start", "", "",
	"UPDATE hx_job SET due_at = NULL, attempt = attempt + 1 WHERE subject IN (SELECT id FROM hx_ids)",
	.pg_sql = "");

/* What would be claimed, as it stands: its rank in line is by its priority. */
/* ?1 to ?5 as above */
DB_STMT(stmt_pick, "job_claim_pick", "ttiii", "ittii",
	SQLITE_CHOSEN("") " SELECT c.id, j.queue, j.payload, s.version, -j.priority FROM chosen c CROSS JOIN hx_job j ON j.subject = c.id"
	" JOIN hx_subject s ON s.id = c.id ORDER BY c.place",
	.pg_sql = "WITH RECURSIVE moment AS MATERIALIZED (SELECT hx_now_ms() AS ms),"
		  HEADS "," BEST("h.bound - " IN_FLIGHT, "(SELECT ms FROM moment)") ","
		  " picked AS MATERIALIZED (SELECT c.* FROM (SELECT * FROM best WHERE bound = 0 OR nth = 1 ORDER BY level, head_at, queue) b"
		  " CROSS JOIN LATERAL (SELECT j.subject, j.queue, j.payload, s.version, -j.priority AS rank FROM hx_job j JOIN hx_subject s"
		  " ON s.id = j.subject WHERE j.workspace = ?1 AND j.queue = b.queue AND j.grade = b.grade AND j.queue <> 'after-effects'"
		  " AND j.due_at <= (SELECT ms FROM moment) AND s.owner IS NULL ORDER BY j.due_at LIMIT LEAST(b.room, ?3)) c LIMIT ?3),"
		  " sized AS (SELECT p.*, sum(octet_length(p.payload)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(p.payload) AS before FROM picked p)"
		  " SELECT subject, queue, payload, version, rank FROM sized WHERE before < ?4 AND ?5 > 0");

/* In how many ms something may be there for this claim, by time alone; below 0: somebody else was at it. NULL: never. */
DB_STMT(stmt_next, "job_claim_next", "tt", "i",
	"SELECT n.at - hx_now_ms() FROM (WITH RECURSIVE" HEADS
	" SELECT min(h.head_at) AS at FROM heads h WHERE h.bound = 0 OR h.bound > " IN_FLIGHT ") n");

/* clang-format on */

enum { SUBJECT, QUEUE, PAYLOAD, EFFECT_KEY, ATTEMPT, FENCE, UNTIL, TRACE };

static bool has_limits(const struct job_claim_request *rq, size_t i)
{
	return rq->limits[i] != NULL;
}

/* of: JOBS_PLAIN, JOBS_LIMITED, or both of them. NULL: there is no room. */
static struct slice queues_text(const struct job_claim_request *rq, unsigned of, struct arena *arena)
{
	struct slice made = {NULL, 0};
	LOCAL_STRBUF(text, QUEUES_BYTES_MAX);

	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < rq->queues_n; i++) {
		if (!(of & (has_limits(rq, i) ? JOBS_LIMITED : JOBS_PLAIN)))
			continue;
		strbuf_add_str(&text, text.n > 1 ? "," : "");
		json_quote(rq->queues[i], &text);
	}
	strbuf_add_char(&text, ']');
	if (!text.failed)
		made = arena_copy(arena, strbuf_slice(&text));
	return made;
}

static void end_looking(struct job_claim *c, const struct answer *answer)
{
	if (c->n || answer->mono.ns >= c->deadline.ns)
		task_end(&c->task, HX_OK);
	else
		task_go(&c->task, CLAIM_JOBS_READING);
}

/* The one kind of queues, then the other: neither keeps the other waiting for ever. */
void job_claim_go_on(struct job_claim *c, const struct answer *answer)
{
	int64_t next = c->left == (JOBS_PLAIN | JOBS_LIMITED) ? answer->id & 1 ? JOBS_PLAIN : JOBS_LIMITED : c->left;

	c->left &= ~next;
	c->stamp = flow_stamp(answer);
	if (!next || !job_claim_has_room(c))
		end_looking(c, answer);
	else
		task_go(&c->task, next == JOBS_LIMITED ? CLAIM_JOBS_PICKING : CLAIM_JOBS_CLAIMING);
}

bool job_claim_is_given_up(const struct job_claim *c)
{
	return c->rq->gave_up && c->rq->gave_up(c->rq->gave_up_context);
}

static void go_claim(struct job_claim *c, const struct answer *answer)
{
	c->left = (c->plain.n > 2 ? JOBS_PLAIN : 0) | (c->limited.n > 2 ? JOBS_LIMITED : 0);
	job_claim_go_on(c, answer);
	if (job_claim_is_given_up(c))
		task_end(&c->task, HX_OK);
}

static void job_claim_take_start(struct job_claim *c, const struct answer *answer)
{
	c->deadline = mono_add_ms(answer->mono, c->rq->wait_ms);
	c->queues = queues_text(c->rq, JOBS_PLAIN | JOBS_LIMITED, c->arena);
	c->plain = queues_text(c->rq, JOBS_PLAIN, c->arena);
	c->limited = queues_text(c->rq, JOBS_LIMITED, c->arena);
	if (c->queues.p && c->plain.p && c->limited.p)
		go_claim(c, answer);
	else
		task_end(&c->task, HX_TOO_LARGE);
}

static struct slice text_or_none(const struct db_value *cell)
{
	return cell->type == DB_TEXT ? cell->s : slice_of(NULL, 0);
}

void job_claim_take_jobs(struct job_claim *c, const struct db_rows *rows)
{
	if (!c->jobs)
		c->jobs = arena_alloc(c->arena, (size_t)c->rq->max * sizeof *c->jobs);
	for (size_t i = 0; i < rows->n && !c->arena->failed; i++) {
		struct job_claimed *job = &c->jobs[c->n++];

		*job = (struct job_claimed){
			.subject = db_cell(rows, i, SUBJECT)->i,
			.attempt = db_cell(rows, i, ATTEMPT)->i,
			.fence = db_cell(rows, i, FENCE)->i,
			.until_ms = db_cell(rows, i, UNTIL)->i,
			.queue = arena_copy(c->arena, db_cell(rows, i, QUEUE)->s),
			.payload = arena_copy(c->arena, db_cell(rows, i, PAYLOAD)->s),
			.key = arena_copy(c->arena, db_cell(rows, i, EFFECT_KEY)->s),
			.trace = arena_copy(c->arena, text_or_none(db_cell(rows, i, TRACE))),
		};
		c->bytes += (int64_t)job->payload.n;
	}
}

/* What is claimed already is told, whatever comes of the rest. */
void job_claim_end_by_store(struct job_claim *c)
{
	task_end(&c->task, c->n ? HX_OK : HX_STORE_UNAVAILABLE);
}

bool job_claim_has_room(const struct job_claim *c)
{
	return (int64_t)c->n < c->rq->max && c->bytes < JOB_CLAIM_BYTES_MAX;
}

static void take_claimed(struct job_claim *c, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON)
		job_claim_take_jobs(c, &answer->result->rows[0]);
	if (c->arena->failed) {
		c->n = 0;
		task_end(&c->task, HX_TOO_LARGE);
	} else if (answer->result->verdict == UNIT_WON || answer->result->verdict == UNIT_LOST) {
		job_claim_go_on(c, answer);
	} else {
		job_claim_end_by_store(c);
	}
}

struct mono_time work_looks_again(const struct answer *answer, struct mono_time deadline)
{
	const struct db_rows *rows = &answer->result->rows[0];
	bool known = answer->result->verdict == UNIT_WON && rows->n && db_cell(rows, 0, 0)->type == DB_INT;
	int64_t in_ms = known ? db_cell(rows, 0, 0)->i : JOB_WORK_POLL_MS;
	struct mono_time at;

	if (in_ms < JOB_WORK_REST_MS)
		in_ms = JOB_WORK_REST_MS;
	at = mono_add_ms(answer->mono, in_ms < JOB_WORK_POLL_MS ? in_ms : JOB_WORK_POLL_MS);
	return deadline.ns < at.ns ? deadline : at;
}

static void take_next(struct job_claim *c, const struct answer *answer)
{
	c->until = work_looks_again(answer, c->deadline);
	task_go(&c->task, CLAIM_JOBS_SLEEPING);
}

void job_claim_add(const struct job_claim *c, struct unit *unit, struct slice queues, int64_t only)
{
	const struct job_claim_request *rq = c->rq;
	struct db_value at = db_int(c->stamp.at.ms), op = db_int(c->stamp.op), node = db_str(c->stamp.node);
	struct db_value owner = db_text(rq->owner), lease = db_int(rq->lease_ms);

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_claim, db_text(rq->workspace), db_text(queues),
		 db_int(rq->max - (int64_t)c->n), db_int(JOB_CLAIM_BYTES_MAX - c->bytes), at, lease, op, owner, node,
		 db_int(only));
	UNIT_ADD(unit, UNIT_ANY, &stmt_tell, op, node, at, owner);
	UNIT_ADD(unit, UNIT_ANY, &stmt_move, op, at, owner, lease);
	unit_add(unit, UNIT_ANY, &stmt_start, 0, NULL);
	unit_add(unit, UNIT_ANY, &stmt_forget, 0, NULL);
}

unsigned job_claim_line(const struct unit *unit)
{
	unsigned line = 0;

	while (unit->lines[line].stmt != &stmt_claim)
		line++;
	return line;
}

static void build_claim(const struct job_claim *c, struct unit *unit)
{
	job_claim_add(c, unit, c->plain, /* only= */ 0);
}

static void build_pick(const struct job_claim *c, struct unit *unit)
{
	unit->op = 0;
	UNIT_ADD(unit, UNIT_ANY, &stmt_pick, db_text(c->rq->workspace), db_text(c->limited), db_int(JOB_PICKS_MAX),
		 db_int(JOB_CLAIM_BYTES_MAX), db_int(c->stamp.at.ms));
}

static void build_next(const struct job_claim *c, struct unit *unit)
{
	unit->op = 0; /* that of the claim tells of the claim alone */
	UNIT_ADD(unit, UNIT_ANY, &stmt_next, db_text(c->rq->workspace), db_text(c->queues));
}

static const TASK_STATES(struct job_claim) claim_states[] = {
	[CLAIM_JOBS_NEW] = {"new", job_claim_take_start},
	[CLAIM_JOBS_CLAIMING] = {"claiming", take_claimed, build_claim},
	[CLAIM_JOBS_PICKING] = {"reading which are due that have a limit", job_claim_take_picked, build_pick},
	[CLAIM_JOBS_TAKING] = {"claiming one of them", job_claim_take_taken, job_claim_build_taking},
	[CLAIM_JOBS_LINING_UP] = {"putting some in line", job_claim_take_lined_up, job_claim_build_line_up},
	[CLAIM_JOBS_READING] = {"reading when the next is due", take_next, build_next},
	[CLAIM_JOBS_SLEEPING] = {"sleeping", go_claim, .until = offsetof(struct job_claim, until),
				 .latest = offsetof(struct job_claim, deadline)},
	[CLAIM_JOBS_DONE] = {"done"},
};

static const struct task_shape claimed_shape = SHAPE(struct job_claimed, NULL,
	PART(MADE, struct job_claimed, subject),
	PART(SLICE, struct job_claimed, queue, payload, key, trace));

/* Of several only the first would count: a worker of the simulator takes one. */
static void forget_job_claim(void *copy)
{
	struct job_claim *c = copy;

	ASSERT(c->n <= 1);
	c->jobs = c->n ? c->jobs : NULL;
}

static const struct task_shape claim_shape = SHAPE(struct job_claim, forget_job_claim,
	PART_WITH(OBJECT, struct job_claim, jobs, &claimed_shape),
	PART(IGNORED, struct job_claim, in_line), /* for a metric */
	PART_WITH(INNER, struct job_claim, stamp, &stamp_shape),
	PART(SLICE, struct job_claim, queues, plain, limited),
	PART_WITH(OBJECT, struct job_claim, picks, &job_picks_shape));

TASK_KIND_STAMPED(claim_kind, "job claim", struct job_claim, claim_states, .shape = &claim_shape);

void job_claim_init(struct job_claim *claim, const struct job_claim_request *rq, struct arena *arena)
{
	ASSERT(rq->queues_n >= 1 && rq->queues_n <= JOB_QUEUES_MAX && rq->max >= 1 && rq->max <= JOB_CLAIM_MAX);
	*claim = (struct job_claim){.rq = rq, .arena = arena};
	task_init(&claim->task, &claim_kind, job_topic(rq->workspace));
}

static bool has_stand(const struct lane_place places[], size_t n, int64_t stand)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].stand == stand)
			return true;
	return false;
}

size_t job_claim_places(const struct job_claim_request *rq, struct lane_place places[JOB_QUEUES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < rq->queues_n; i++) {
		int64_t stand = job_stand(rq->workspace, rq->queues[i]);

		if (!has_stand(places, n, stand))
			places[n++] = (struct lane_place){.stand = stand};
	}
	return n;
}

size_t job_claim_took(const struct job_claim *claim, const struct lane_place *place)
{
	size_t n = 0;

	for (size_t i = 0; i < claim->n; i++)
		n += job_stand(claim->rq->workspace, claim->jobs[i].queue) == place->stand;
	return n;
}
