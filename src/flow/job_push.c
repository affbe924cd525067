/*
 * Pushing jobs, up to JOB_PUSH_MAX in one unit. See job_work.h for the states.
 *
 * The items travel as JSON, so that one statement takes all of them, on both stores:
 *
 *   rows  [[id, queue, effect key, payload, due at or null, priority, key or null], …]   for the job rows
 *   names [[id, queue, key or null], …]                                                   for all else
 *
 * The payload is a string in there, whatever JSON it is itself: so its bytes stay as they came.
 *
 * A key is insert-and-see: the unique index lets one of them in, the last line finds whose it is, also where the same key
 * comes twice in one request. The ids are ours alone, so an item was created exactly when the job that is there has its id;
 * and where none has a key nobody looks: all of them were made, or the unit has failed.
 */
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_write.h"
#include "flow/answer.h"
#include "flow/job_work.h"
#include "flow/subject_change.h"
#include "task/states.h"

#define ROWS_BYTES_MAX (60u << 20)

/* On PostgreSQL. In the order of the keys: two nodes that push the same ones must not wait for each other. */
#define PUSHED(rows, workspace, units)                                                                                 \
	INTO_JOB(", priority, job_key")                                                                                \
	" SELECT (r->>0)::bigint, " workspace ", r->>1, '', '', r->>2, r->>3,"                                         \
	" coalesce((r->>4)::bigint, hx_now_ms()), 1, (r->>5)::bigint, r->>6 FROM " units "json_array_elements(" rows   \
	"::json) AS r ORDER BY " workspace ", r->>1, r->>6 ON CONFLICT DO NOTHING"

/* ?1 rows   ?2 workspace   ?3 now, where the store's clock is ours */
DB_STMT(stmt_push, "job_push", "tti", "",
	INTO_JOB(", priority, job_key") " SELECT json_extract(value, '$[0]'), ?2, json_extract(value, '$[1]'), '', '',"
	" json_extract(value, '$[2]'), json_extract(value, '$[3]'), coalesce(json_extract(value, '$[4]'), ?3),"
	" 1, json_extract(value, '$[5]'), json_extract(value, '$[6]') FROM json_each(?1) WHERE true"
	" ON CONFLICT DO NOTHING",
	.pg_sql = PUSHED("?1", "?2", ""),
	.set_sql = PUSHED("u.p1", "u.p2", "{u}, "));

/* On PostgreSQL: those that were let in. */
#define MADE(kind, op, at, node, names, units)                                                                         \
	MAKE_SUBJECTS(NEW_SUBJECT("j.subject", kind, "'AVAILABLE'", op, at, node), node,                               \
		      " FROM " units "json_array_elements(" names "::json) AS r"                                       \
		      " CROSS JOIN LATERAL (SELECT subject FROM hx_job WHERE subject = (r->>0)::bigint OFFSET 0) j")

/*
 * Only for those that were let in. An id that is there already is a data error, which nobody meets. PostgreSQL writes the
 * history with it, and is kept from joining in any other way (OFFSET 0): a plan may be made while the tables are empty.
 */
DB_STMT(stmt_subjects, "job_push_subjects", "tiiit", "",
	INTO_SUBJECT NEW_SUBJECT("j.subject", "?2", "'AVAILABLE'", "?3", "?4", "?5")
	" FROM json_each(?1) r CROSS JOIN hx_job j ON j.subject = json_extract(r.value, '$[0]')",
	.pg_sql = MADE("?2", "?3", "?4", "?5", "?1", ""),
	.set_sql = MADE("u.p2", "u.p3", "u.p4", "u.p5", "u.p1", "{u}, "));

DB_STMT(stmt_history, "job_push_history", "tit", "",
	INTO_HISTORY " SELECT s.id, s.seq, '', s.status, s.version, s.fence, s.op, ?3, s.updated_at, s.head"
	" FROM json_each(?1) r CROSS JOIN hx_subject s ON s.id = json_extract(r.value, '$[0]') WHERE s.op = ?2",
	.pg_sql = "");

/* A key as a range that has an order: before the table was analysed that leaves PostgreSQL the index of the keys, and no other. */
#define SEEN(first, names, workspace, units, order)                                                                    \
	"SELECT " first "coalesce((SELECT subject FROM hx_job WHERE workspace = " workspace " AND queue = r.name->>1"  \
	" AND job_key >= r.name->>2 AND job_key <= r.name->>2 ORDER BY job_key LIMIT 1),"                              \
	" (SELECT subject FROM hx_job WHERE subject = (r.name->>0)::bigint))"                                          \
	" FROM " units "json_array_elements(" names "::json) WITH ORDINALITY AS r(name, n) ORDER BY " order "r.n"

/* For each item the job that is there, in their order; NULL: none. */
DB_STMT(stmt_seen, "job_push_seen", "tt", "i",
	"SELECT coalesce((SELECT subject FROM hx_job WHERE workspace = ?2 AND queue = json_extract(r.value, '$[1]')"
	" AND job_key = json_extract(r.value, '$[2]')),"
	" (SELECT subject FROM hx_job WHERE subject = json_extract(r.value, '$[0]')))"
	" FROM json_each(?1) r ORDER BY r.key",
	.pg_sql = SEEN("", "?1", "?2", "", ""),
	.set_sql = SEEN("u.ord, ", "u.p1", "u.p2", "{u}, ", "u.ord, "));

enum { PUSH_NEW, PUSH_PUSHING, PUSH_LOOKING, PUSH_DONE };

static void job_push_add_row(struct strbuf *text, const struct job_push_item *item)
{
	strbuf_addf(text, "[%lld", (long long)item->subject);
	json_next_text(text, item->queue);
	json_next_text(text, slice_str(id_text("job", item->subject).text));
	json_next_text(text, item->payload);
	if (item->due_at_ms)
		strbuf_addf(text, ",%lld", (long long)item->due_at_ms);
	else
		strbuf_add_str(text, ",null");
	strbuf_addf(text, ",%lld", (long long)item->priority);
	json_next_text(text, item->key);
	strbuf_add_char(text, ']');
}

static void job_push_add_name(struct strbuf *text, const struct job_push_item *item)
{
	strbuf_addf(text, "[%lld", (long long)item->subject);
	json_next_text(text, item->queue);
	json_next_text(text, item->key);
	strbuf_add_char(text, ']');
}

static struct slice make_text(struct job_push *p, void (*add)(struct strbuf *, const struct job_push_item *))
{
	struct slice made = {NULL, 0};
	LOCAL_STRBUF(text, ROWS_BYTES_MAX);

	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < p->n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		add(&text, &p->items[i]);
	}
	strbuf_add_char(&text, ']');
	if (!text.failed)
		made = arena_copy(p->arena, strbuf_slice(&text));
	return made;
}

static void job_push_take_start(struct job_push *p, const struct answer *answer)
{
	for (size_t i = 0; i < p->n; i++) {
		p->items[i].subject = id_next(answer->ids, answer->now);
		if (slice_is(p->items[i].queue, JOB_QUEUE_AFTER_EFFECTS)) {
			task_end(&p->task, HX_VALIDATION_ERROR);
			return;
		}
	}
	p->rows = make_text(p, job_push_add_row);
	p->names = make_text(p, job_push_add_name);
	p->stamp = flow_stamp(answer);
	task_go(&p->task, PUSH_PUSHING);
	if (!p->rows.p || !p->names.p)
		task_end(&p->task, HX_TOO_LARGE);
}

/* What the last line found. False: not all of them are there. */
static bool take_seen(struct job_push *p, const struct db_rows *rows)
{
	for (size_t i = 0; i < p->n; i++)
		if (rows->n != p->n || db_cell(rows, i, 0)->type == DB_NULL)
			return false;
	for (size_t i = 0; i < p->n; i++) {
		int64_t seen = db_cell(rows, i, 0)->i;

		p->items[i].created = seen == p->items[i].subject;
		p->items[i].subject = seen;
	}
	return true;
}

static bool has_key(const struct job_push *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->items[i].key.p)
			return true;
	return false;
}

static void take_all(struct job_push *p)
{
	for (size_t i = 0; i < p->n; i++)
		p->items[i].created = true;
	task_end(&p->task, HX_OK);
}

static void take_pushed(struct job_push *p, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	if (result->verdict == UNIT_UNKNOWN)
		task_go(&p->task, PUSH_LOOKING);
	else if (result->verdict == UNIT_LOST)
		task_end(&p->task, HX_ALREADY_EXISTS);
	else if (result->verdict != UNIT_WON)
		task_end(&p->task, flow_failure(result));
	else if (has_key(p))
		task_end(&p->task, take_seen(p, &result->rows[3]) ? HX_OK : HX_INTERNAL);
	else
		take_all(p);
}

/* All or none: one that has an id of ours tells of all. Where every key was there already nothing had to be pushed. */
static void take_looked(struct job_push *p, const struct answer *answer)
{
	const struct unit_result *result = answer->result;
	bool there = result->verdict == UNIT_WON && take_seen(p, &result->rows[0]);

	task_end(&p->task, there ? HX_OK : HX_OUTCOME_UNKNOWN);
}

/* One that is due later is told as well: whoever looks by time has to reckon with it. */
static void push_offer(const struct job_push *p, struct unit *unit)
{
	for (size_t i = 0; i < p->n; i++)
		job_offer(unit, p->workspace, p->items[i].queue, 1);
}

static void build_look(const struct job_push *p, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_seen, db_text(p->names), db_text(p->workspace));
	push_offer(p, unit);
}

static void build_push(const struct job_push *p, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_push, db_text(p->rows), db_text(p->workspace), db_int(p->stamp.at.ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_subjects, db_text(p->names), db_int(job_kind()), db_int(p->stamp.op),
		 db_int(p->stamp.at.ms), db_str(p->stamp.node));
	UNIT_ADD(unit, UNIT_ANY, &stmt_history, db_text(p->names), db_int(p->stamp.op), db_str(p->stamp.node));
	if (has_key(p))
		build_look(p, unit);
	else
		push_offer(p, unit);
	if (p->along)
		p->along->add(p->along, p, unit);
}

static const TASK_STATES(struct job_push) push_states[] = {
	[PUSH_NEW] = {"new", job_push_take_start},
	[PUSH_PUSHING] = {"pushing", take_pushed, build_push},
	[PUSH_LOOKING] = {"looking for what was pushed", take_looked, build_look},
	[PUSH_DONE] = {"done"},
};

TASK_KIND_STAMPED(push_kind, "job push", struct job_push, push_states);

void job_push_init(struct job_push *push, struct slice workspace, struct job_push_item *items, size_t n,
		   struct arena *arena)
{
	ASSERT(n >= 1 && n <= JOB_PUSH_MAX);
	*push = (struct job_push){.workspace = workspace, .n = n, .items = items, .arena = arena};
	task_init(&push->task, &push_kind, /* topic= */ 0);
}
