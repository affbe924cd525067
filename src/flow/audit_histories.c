/*
 * The pass over all subjects: each with its history and the row of its noun.
 *
 * Subjects by id and history by (subject, seq) are two streams in the same order, read in one unit and walked through side by
 * side, as far as both of them were read. A subject whose rows are more than fit is left in the middle (a->chain) and met again
 * as the first of the next slice.
 */
#include <stdio.h>

#include "flow/audit_parts.h"
#include "flow/batch.h"
#include "flow/function.h"
#include "flow/job.h"
#include "flow/run.h"
#include "flow/schedule.h"

/* clang-format off */

DB_STMT(stmt_range, "audit_range", "", "ii",
	"SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM hx_subject");

/* The unit that made a job of a run is in the history of that run, as long as that is there. */
#define MADE_BY_RUN                                                                                                    \
	"CAST(CASE WHEN j.run IS NULL THEN 0 WHEN o.subject IS NULL THEN 1 WHEN o.expired = 0 AND NOT EXISTS"          \
	" (SELECT 1 FROM hx_history h WHERE h.subject = j.run AND h.op ="                                                 \
	" (SELECT f.op FROM hx_history f WHERE f.subject = s.id AND f.seq = 1)) THEN 2 ELSE 0 END AS bigint)"

DB_STMT(stmt_subjects, "audit_subjects", "ii", "iitiiitiiib" "ittt" "iiiii" "iii" "iii" "it",
	"SELECT s.id, s.kind, s.status, s.version, s.op, s.fence, s.owner, s.until, s.updated_at, s.seq, s.head,"
	" e.subject, e.workspace, e.workflow, e.name, j.subject, j.due_at, j.ended_at, j.attempt, " MADE_BY_RUN ","
	" r.subject, r.completed_at, r.expired, b.subject, b.completed_at, b.expired, a.subject, a.name"
	" FROM (SELECT * FROM hx_subject WHERE id >= ?1 ORDER BY id LIMIT ?2) s"
	" LEFT JOIN hx_entity e ON e.subject = s.id LEFT JOIN hx_job j ON j.subject = s.id"
	" LEFT JOIN hx_run r ON r.subject = s.id LEFT JOIN hx_batch b ON b.subject = s.id"
	" LEFT JOIN hx_account a ON a.subject = s.id LEFT JOIN hx_run o ON o.subject = j.run ORDER BY s.id");
enum {
	ID, KIND, STATUS, VERSION, OP, FENCE, OWNER, UNTIL, UPDATED_AT, SEQ, HEAD,
	ENTITY, ENTITY_OF, ENTITY_WORKFLOW, ENTITY_NAMED,
	JOB, JOB_DUE, JOB_ENDED, JOB_ATTEMPTS, JOB_MADE,
	RUN, RUN_ENDED, RUN_STRIPPED,
	BATCH, BATCH_ENDED, BATCH_STRIPPED,
	ACCOUNT, ACCOUNT_NAMED
};

/* Up to the last subject that the line above has read, or to the end of all. */
DB_STMT(stmt_history, "audit_history", "iiii", "iittiiitib",
	"SELECT subject, seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
	" WHERE (subject, seq) > (?1, ?3) AND subject <= coalesce((SELECT id FROM hx_subject WHERE id >= ?1"
	" ORDER BY id LIMIT 1 OFFSET ?2 - 1), 9223372036854775807) ORDER BY subject, seq LIMIT ?4");

/* clang-format on */

enum { LINE_SUBJECTS, LINE_HISTORY, LINE_RANGE };

static void histories_ask(struct auditor *a, struct unit *unit)
{
	struct db_value from = db_int(a->key);

	UNIT_ADD(unit, UNIT_ANY, &stmt_subjects, from, db_int(AUDIT_SUBJECTS_SLICE));
	UNIT_ADD(unit, UNIT_ANY, &stmt_history, from, db_int(AUDIT_SUBJECTS_SLICE), db_int(a->seq),
		 db_int(AUDIT_ROWS_SLICE));
	if (!a->last)
		unit_add(unit, UNIT_ANY, &stmt_range, 0, NULL);
}

/* ---- a subject ---- */

static bool is_there(const struct db_value *row, int column)
{
	return row[column].type != DB_NULL;
}

/* NULL: it is no noun's. */
static const struct audit_noun *noun_of(const struct db_value *row)
{
	if (is_there(row, ENTITY))
		return row[ENTITY_OF].s.n ? &audit_entity : &audit_table_entity;
	return is_there(row, JOB)               ? &audit_job
	       : is_there(row, RUN)             ? &audit_run
	       : is_there(row, BATCH)           ? &audit_batch
	       : is_there(row, ACCOUNT)         ? &audit_account
	       : row[KIND].i == schedule_kind() ? &audit_schedule /* also one that was deleted, which has no row */
						: NULL;
}

static int64_t kind_of(const struct audit_noun *noun, const struct db_value *row)
{
	char workflow[WORKFLOW_NAME_MAX + 1];

	if (noun == &audit_job)
		return job_kind();
	if (noun == &audit_run)
		return row[KIND].i == function_kind() ? function_kind() : run_kind();
	if (noun == &audit_batch)
		return batch_kind();
	if (noun == &audit_account)
		return account_kind();
	if (noun == &audit_schedule)
		return schedule_kind();
	snprintf(workflow, sizeof workflow, "%.*s", SLICE_ARGS(row[ENTITY_WORKFLOW].s));
	return subject_kind("entity:", workflow);
}

static void name_it(struct auditor *a, const struct audit_noun *noun, const struct db_value *row)
{
	char *name = a->finding.subject;

	if (!a->finding.there || !noun)
		return;
	if (noun->prefix)
		audit_name(a, noun->prefix);
	else if (noun == &audit_account)
		snprintf(name, AUDIT_NAME_BYTES, "account:%.*s", SLICE_ARGS(row[ACCOUNT_NAMED].s));
	else
		snprintf(name, AUDIT_NAME_BYTES, "entity:%.*s:%.*s", SLICE_ARGS(row[ENTITY_WORKFLOW].s),
			 SLICE_ARGS(row[ENTITY_NAMED].s));
}

static struct audit_subject subject_of(const struct db_value *row)
{
	return (struct audit_subject){
		.id = row[ID].i,
		.kind = row[KIND].i,
		.status = row[STATUS].s,
		.version = row[VERSION].i,
		.op = row[OP].i,
		.fence = row[FENCE].i,
		.owned = is_there(row, OWNER),
		.has_until = is_there(row, UNTIL),
		.at = row[UPDATED_AT].i,
		.seq = row[SEQ].i,
		.head = row[HEAD].s,
	};
}

static bool is_stripped(const struct db_value *row)
{
	return cell_int(&row[RUN_STRIPPED]) != 0 || cell_int(&row[BATCH_STRIPPED]) != 0;
}

/* ---- the subject and its noun ---- */

static bool says_when(struct audit_finding *f, const struct audit_place *place, bool wanted, bool there,
		      const char *what)
{
	return audit_holds(f, place, wanted == there, what, wanted ? "a time, in this status" : "none, in this status",
			   slice_str(there ? "a time" : "none"));
}

static bool job_fits(struct audit_finding *f, const struct audit_place *place, const struct audit_subject *s,
		     const struct db_value *row)
{
	bool waits = slice_is(s->status, JOB_AVAILABLE) || slice_is(s->status, JOB_RETRYING);

	return audit_holds(f, place, s->owned == slice_is(s->status, JOB_RUNNING), "owner",
			   "one exactly while it is RUNNING", s->status) &&
	       says_when(f, place, waits, is_there(row, JOB_DUE), "due_at") &&
	       says_when(f, place, audit_is_terminal(&audit_job, s->status), is_there(row, JOB_ENDED), "ended_at") &&
	       audit_holds(f, place, row[JOB_ATTEMPTS].i <= s->fence, "fence", "one for each attempt of the job",
			   slice_str("fewer")) &&
	       audit_holds(
		       f, place, row[JOB_MADE].i == 0, "creation", "by a unit of its run",
		       slice_str(row[JOB_MADE].i == 1 ? "there is no such run" : "its run's history knows of none"));
}

static bool noun_fits(struct audit_finding *f, const struct audit_noun *noun, const struct audit_subject *s,
		      const struct db_value *row)
{
	struct audit_place place = {.id = s->id};
	bool over = audit_is_terminal(noun, s->status);

	if (!audit_equal(f, &place, "kind", kind_of(noun, row), s->kind) ||
	    !audit_holds(f, &place, s->owned == s->has_until, "owner", "both owner and time, or neither",
			 slice_str(s->owned ? "an owner without a time" : "a time without an owner")) ||
	    !audit_holds(f, &place, !over || !s->owned, "owner", "none: it has ended", s->status))
		return false;
	if (noun == &audit_job)
		return job_fits(f, &place, s, row);
	if (noun == &audit_run)
		return says_when(f, &place, over, is_there(row, RUN_ENDED), "completed_at");
	if (noun == &audit_batch)
		return says_when(f, &place, over, is_there(row, BATCH_ENDED), "completed_at");
	return true;
}

static bool is_zero(struct slice head)
{
	for (size_t i = 0; i < head.n; i++)
		if (head.p[i])
			return false;
	return true;
}

/* What retention has left: all that can be said of its history is its head. */
static bool tombstone_fits(struct audit_finding *f, const struct audit_noun *noun, const struct audit_chain *chain,
			   const struct audit_subject *s)
{
	struct audit_place place = {.id = s->id};

	return audit_holds(f, &place, s->head.n == SHA256_BYTES && !is_zero(s->head) && s->seq >= 1, "head",
			   "the head of the history that retention took", slice_str("none")) &&
	       audit_holds(f, &place, audit_is_terminal(noun, s->status), "status", "a terminal one: it is expired",
			   s->status) &&
	       audit_holds(f, &place, chain->last.seq == 0, "history", "none: it is expired", slice_str("rows"));
}

/* ---- both streams ---- */

static struct history_row row_at(const struct db_rows *rows, size_t i)
{
	const struct db_value *cell = db_cell(rows, i, 0);

	return (struct history_row){
		.subject = cell[0].i,
		.seq = cell[1].i,
		.from = cell[2].s,
		.to = cell[3].s,
		.version = cell[4].i,
		.fence = cell[5].i,
		.op = cell[6].i,
		.node = cell[7].s,
		.at = cell[8].i,
	};
}

/* The rows of this subject that were read. */
static bool follow(struct auditor *a, struct audit_streams *all, const struct audit_noun *noun,
		   const struct audit_subject *s)
{
	while (all->at < all->rows->n && db_cell(all->rows, all->at, 0)->i == s->id) {
		struct history_row row = row_at(all->rows, all->at);
		struct audit_place place = {s->id, "history row", row.seq};

		if (!audit_holds(&a->finding, &place, row.seq <= s->seq, "seq",
				 "no row: its subject has not come so far",
				 slice_str("a row of a unit that was not won")) ||
		    !audit_chain_add(&a->chain, noun, &row, db_cell(all->rows, all->at, 9)->s, &a->finding))
			return false;
		all->at++;
		a->counts.history_rows++;
	}
	return true;
}

static bool audit_histories_judge(struct auditor *a, const struct audit_noun *noun, const struct audit_subject *s,
				  const struct db_value *row)
{
	a->counts.subjects++;
	if (is_stripped(row))
		return tombstone_fits(&a->finding, noun, &a->chain, s);
	return audit_chain_end(&a->chain, s, &a->finding) && noun_fits(&a->finding, noun, s, row);
}

/* *ret_whole: all of its history has been read. */
static bool audit_histories_walk(struct auditor *a, struct audit_streams *all, size_t i, bool *ret_whole)
{
	const struct db_value *row = db_cell(all->heads, i, 0);
	const struct audit_noun *noun = noun_of(row);
	struct audit_subject s = subject_of(row);
	struct audit_place place = {.id = s.id};
	bool fine;

	if (a->chain.last.subject != s.id || is_stripped(row))
		audit_chain_start(&a->chain, s.id);
	fine = audit_belongs(a, all, &s.id) &&
	       audit_holds(&a->finding, &place, noun != NULL, "noun", "an entity, run, batch, job, account or schedule",
			   slice_str("none")) &&
	       follow(a, all, noun, &s);
	*ret_whole = all->at < all->rows->n || !all->cut;
	if (fine && *ret_whole)
		fine = audit_histories_judge(a, noun, &s, row);
	if (a->finding.id == s.id)
		name_it(a, noun, row);
	return fine;
}

static void note_percent(struct auditor *a, const struct unit_result *result)
{
	const struct db_rows *range = &result->rows[LINE_RANGE];

	if (!a->last) {
		a->first = db_cell(range, 0, 0)->i;
		a->last = db_cell(range, 0, 1)->i;
	}
	if (a->last <= a->first || a->key >= a->last)
		a->percent = 100;
	else if (a->key <= a->first) /* before the first slice it is before all ids */
		a->percent = 0;
	else
		a->percent = (int)(100.0 * (double)(a->key - a->first) / (double)(a->last - a->first));
}

static bool histories_take(struct auditor *a, const struct unit_result *result)
{
	struct audit_streams all = {
		.heads = &result->rows[LINE_SUBJECTS],
		.rows = &result->rows[LINE_HISTORY],
		.cut = result->rows[LINE_HISTORY].n == AUDIT_ROWS_SLICE,
		.row = "history row",
		.head = "subject",
		.wanted = "the subject of this row",
	};
	bool more = audit_walk(a, &all, audit_histories_walk);

	note_percent(a, result);
	return more;
}

const struct audit_pass audit_histories = {.name = "histories", .ask = histories_ask, .take = histories_take};
