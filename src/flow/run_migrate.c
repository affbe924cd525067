/* See run_migrate.h. */
#include "flow/run_migrate.h"

#include <string.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "flow/attribute.h"
#include "flow/run_children.h"
#include "flow/run_fit.h"
#include "flow/subject_change.h"
#include "model/reader.h"
#include "model/text.h"

#define LIST_BYTES_MAX (16u << 20)
#define STEPS_MAX 200000
#define RENAMES_BYTES_MAX (1u << 20)
#define STATE_BYTES_MAX (48u << 20)

/* clang-format off */

/* ---- reading ---- */

#define TREE                                                                                                           \
	"(WITH RECURSIVE tree(subject) AS (SELECT r.subject FROM hx_run r WHERE r.subject = ?1 UNION ALL"                  \
	" SELECT k.subject FROM tree t JOIN hx_run k ON k.parent = t.subject WHERE k.scope IS NOT NULL AND k.child <> 'cancelled'" \
	" AND k.expired = 0) SELECT subject FROM tree)"

DB_STMT(stmt_target, "run_migrate_target", "ii", "i",
	"SELECT d.version FROM hx_run r JOIN hx_definition d ON d.name = r.workflow AND d.version = ?2 WHERE r.subject = ?1");

DB_STMT(stmt_runs, "run_migrate_runs", "ii", "iitiitiiiittii",
	"SELECT r.subject, s.version, s.status, CAST(CASE WHEN s.owner IS NULL THEN 0 ELSE 1 END AS bigint), s.doubt, r.scope, r.at_step,"
	" r.attempt, r.redo, coalesce(r.undo, -1), r.awaits, r.step_status, coalesce(r.job, 0), coalesce(r.stood_attempt, 0)"
	" FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.subject IN " TREE " ORDER BY r.subject LIMIT ?2");
enum { SUBJECT, VERSION, STATUS, OWNED, DOUBT, SCOPE, AT_STEP, ATTEMPT, REDO, UNDO, AWAITS, STEP_STATUS, JOB, STOOD };

/* Of an output the way that a condition led is all that counts. */
DB_STMT(stmt_steps, "run_migrate_steps", "ii", "iii",
	"SELECT t.run, t.position, CAST(CASE WHEN length(t.output) = 4 AND t.output = 'true' THEN 1 ELSE 0 END AS bigint)"
	" FROM hx_run_step t WHERE t.run IN " TREE " ORDER BY t.run, t.position LIMIT ?2");

/* ---- what is asked for ---- */

struct slice run_migrate_renames(struct json map, struct arena *arena, const char **ret_words)
{
	struct json name, value;
	struct json_iter it;
	LOCAL_STRBUF(text, RENAMES_BYTES_MAX);

	*ret_words = "steps is an object: the old name of a step, and its new one";
	if (json_type(map) != JSON_OBJECT)
		return slice_of(NULL, 0);
	*ret_words = "steps has a name that no step can have";
	it = json_iter_of(map);
	strbuf_add_char(&text, '{');
	while (json_iter_member(&it, &name, &value)) {
		struct slice old = json_string_decode(name, arena), now = slice_of(NULL, 0);

		if (json_type(value) == JSON_STRING)
			now = json_string_decode(value, arena);
		if (!old.p || !now.p || !name_is_valid(old) || !name_is_valid(now))
			return slice_of(NULL, 0);
		if (!slice_eq(old, now))
			json_more_text(&text, old.p, now);
	}
	strbuf_add_char(&text, '}');
	*ret_words = NULL;
	return text.failed ? slice_of(NULL, 0) : arena_copy(arena, strbuf_slice(&text));
}

/* ---- writing ---- */

/* What the lists say, as tables. */
#define RUNS                                                                                                           \
	"(SELECT json_extract(value, '$[0]') AS run, json_extract(value, '$[1]') AS seen, json_extract(value, '$[2]') AS part,"   \
	" json_extract(value, '$[3]') AS stands, json_extract(value, '$[4]') AS undoes, json_extract(value, '$[5]') AS hears,"    \
	" json_extract(value, '$[6]') AS goes_on, json_extract(value, '$[7]') AS anew FROM json_each(?1)) x"
#define PG_RUNS                                                                                                        \
	"(SELECT (r->>0)::bigint AS run, (r->>1)::bigint AS seen, r->>2 AS part, (r->>3)::bigint AS stands, (r->>4)::bigint AS undoes,"  \
	" r->>5 AS hears, (r->>6)::bigint AS goes_on, (r->>7)::bigint AS anew FROM json_array_elements(?1::json) AS t(r)) x"
#define POSITIONS                                                                                                      \
	"(SELECT json_extract(value, '$[0]') AS of_run, json_extract(value, '$[1]') AS was, json_extract(value, '$[2]') AS now"    \
	" FROM json_each(?1)) p"
#define PG_POSITIONS                                                                                                   \
	"(SELECT (r->>0)::bigint AS of_run, (r->>1)::bigint AS was, (r->>2)::bigint AS now FROM json_array_elements(?1::json) AS t(r)) p"
#define NAMES "(SELECT json_extract(value, '$[0]') AS was, json_extract(value, '$[1]') AS now FROM json_each(?2)) n"
#define PG_NAMES "(SELECT r->>0 AS was, r->>1 AS now FROM json_array_elements(?2::json) AS t(r)) n"
#define BOTH(text, sqlite, postgres) .sql = text(sqlite), .pg_sql = text(postgres)
#define BOTH_WITH_NAMES(text) .sql = text(RUNS, NAMES), .pg_sql = text(PG_RUNS, PG_NAMES)

/* In the order of their ids, as everybody locks. On SQLite nobody else writes. */
DB_STMT(stmt_lock, "run_migrate_lock", "t", "i",
	.sql = "",
	.pg_sql = "SELECT s.id FROM hx_subject s WHERE s.id IN (SELECT x.run FROM " PG_RUNS ") ORDER BY s.id FOR UPDATE");

/* Of all parts, or none. */
#define UNCHANGED(runs)                                                                                                \
	"SELECT CAST(1 AS bigint) WHERE (SELECT count(*) FROM " runs " JOIN hx_subject s ON s.id = x.run"                  \
	" AND s.version = x.seen WHERE x.run <> ?3) = ?2"
DB_STMT(stmt_unchanged, "run_migrate_unchanged", "tii", "i", BOTH(UNCHANGED, RUNS, PG_RUNS));

#define SUBJECTS(runs)                                                                                                 \
	"UPDATE hx_subject SET version = version + 1, op = ?3, updated_at = ?4, seq = seq + 1,"                            \
	" head = hx_link(head, id, seq + 1, status, status, version + 1, fence, ?3, ?4, ?5) FROM " runs                    \
	" WHERE id = x.run AND id <> ?2"
DB_STMT(stmt_subjects, "run_migrate_subjects", "tiiit", "", BOTH(SUBJECTS, RUNS, PG_RUNS));

#define HISTORIES(runs)                                                                                                \
	INTO_HISTORY " SELECT s.id, s.seq, s.status, s.status, s.version, s.fence, s.op, ?3, s.updated_at, s.head"         \
	" FROM " runs " JOIN hx_subject s ON s.id = x.run WHERE s.id <> ?2"
DB_STMT(stmt_histories, "run_migrate_histories", "tit", "", BOTH(HISTORIES, RUNS, PG_RUNS));

#define NOTES(runs)                                                                                                    \
	"INSERT INTO hx_note (subject, seq, requester, reason) SELECT s.id, s.seq, ?2, ?3 FROM " runs " JOIN hx_subject s ON s.id = x.run"
DB_STMT(stmt_notes, "run_migrate_notes", "ttt", "", BOTH(NOTES, RUNS, PG_RUNS));

#define ROWS(runs)                                                                                                     \
	"UPDATE hx_run SET definition_version = ?2, renamed = ?3, scope = x.part, at_step = x.stands, redo = redo + x.anew," \
	" undo = CASE WHEN x.undoes >= 0 THEN x.undoes END, awaits = coalesce(x.hears, awaits),"                           \
	" due_at = CASE WHEN x.goes_on = 1 THEN hx_now_ms() ELSE due_at END FROM " runs " WHERE subject = x.run"
DB_STMT(stmt_rows, "run_migrate_rows", "tit", "", BOTH(ROWS, RUNS, PG_RUNS));

/* Who stands in line for a slot (slot.h) may need another one, or none, under the other version: it looks again. */
#define LINE_DUE(runs)                                                                                                 \
	"UPDATE hx_run SET due_at = hx_now_ms() FROM " runs " WHERE subject = x.run AND due_at > hx_now_ms()"              \
	" AND EXISTS (SELECT 1 FROM hx_slot w WHERE w.holder = hx_run.subject AND w.held <> 1)"
DB_STMT(stmt_line_due, "run_migrate_line_due", "t", "", BOTH(LINE_DUE, RUNS, PG_RUNS));

#define LINE_LEFT(runs) "DELETE FROM hx_slot WHERE held <> 1 AND holder IN (SELECT x.run FROM " runs ")"
DB_STMT(stmt_line_left, "run_migrate_line_left", "t", "", BOTH(LINE_LEFT, RUNS, PG_RUNS));

DB_STMT(stmt_time, "run_migrate_time", "ii", "", "UPDATE hx_run SET times_out_at = ?2 WHERE subject = ?1");

/* A position is free before a row comes to it: first all go far away. */
#define AWAY "1000000"
#define LEAVE(positions)                                                                                               \
	"UPDATE hx_run_step SET position = position + " AWAY " FROM " positions " WHERE run = p.of_run AND position = p.was"
#define ARRIVE(positions)                                                                                              \
	"UPDATE hx_run_step SET position = p.now FROM " positions " WHERE run = p.of_run AND position = p.was + " AWAY
DB_STMT(stmt_leave, "run_migrate_leave", "t", "", BOTH(LEAVE, POSITIONS, PG_POSITIONS));
DB_STMT(stmt_arrive, "run_migrate_arrive", "t", "", BOTH(ARRIVE, POSITIONS, PG_POSITIONS));

#define CHILDREN(runs, names)                                                                                          \
	"UPDATE hx_run SET parent_step = n.now FROM " runs ", " names " WHERE parent = x.run AND parent_step = n.was"
DB_STMT(stmt_children, "run_migrate_children", "tt", "", BOTH_WITH_NAMES(CHILDREN));

/* A decision that nobody has taken yet is the renamed step's. */
#define DECISIONS(runs, names)                                                                                         \
	"UPDATE hx_run_event SET name = 'approval ' || n.now,"                                                             \
	" id = 'approval/' || n.now || substr(id, length('approval/' || n.was) + 1) FROM " runs ", " names                 \
	" WHERE hx_run_event.run = x.run AND taken_by IS NULL AND name = 'approval ' || n.was"
DB_STMT(stmt_decisions, "run_migrate_decisions", "tt", "", BOTH_WITH_NAMES(DECISIONS));

/* clang-format on */

void run_migrate_read(struct unit *unit, int64_t subject, int64_t version)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_target, db_int(subject), db_int(version));
	UNIT_ADD(unit, UNIT_ANY, &stmt_runs, db_int(subject), db_int(RUN_MIGRATE_PARTS_MAX + 2));
	UNIT_ADD(unit, UNIT_ANY, &stmt_steps, db_int(subject), db_int(STEPS_MAX + 1));
}

/* ---- deciding ---- */

/* What is known while the runs are gone through. */
struct walk {
	const struct run_row *row;
	struct run_migration *m;
	struct arena *arena;
	struct json renames;
	const struct db_rows *steps;
	size_t at; /* of them */
	struct strbuf runs, positions;
	const char **ret_detail;
};

/* One of the runs: itself, or a part of it. */
struct member {
	const struct db_value *cells;
	const struct run_definition *from, *to;
	struct run_passed *passed;
	size_t passed_n;
	size_t stood, stands; /* before and after it */
	bool current;         /* what its row says of a step is about the one where it stands, or which it undoes */
	bool begun;
};

static enum hx_code refuse(struct walk *w, const struct run_misfit *misfit)
{
	*w->ret_detail = text_printf(w->arena, "step \"%s\": %s%s", misfit->step, misfit->why,
				     misfit->other ? misfit->other : "");
	w->m->misfit = misfit->step;
	return HX_CANNOT_MIGRATE;
}

static bool is_text(const struct db_value *cell, const char *text)
{
	return cell->type != DB_NULL && slice_is(cell->s, text);
}

/* Its rows; false: they are of another version by now. */
static bool take_passed(struct walk *w, struct member *member)
{
	int64_t subject = member->cells[SUBJECT].i;
	size_t n = 0;

	while (w->at + n < w->steps->n && db_cell(w->steps, w->at + n, 0)->i == subject)
		n++;
	member->passed = arena_alloc(w->arena, (n + 1) * sizeof *member->passed);
	if (!member->passed)
		return false;
	for (size_t i = 0; i < n; i++, w->at++) {
		size_t position = (size_t)db_cell(w->steps, w->at, 1)->i;
		bool truth = db_cell(w->steps, w->at, 2)->i != 0;

		if (position >= member->from->steps_n)
			return false;
		member->passed[i] = (struct run_passed){.position = position, .truth = truth};
		member->stood = run_next_position(member->from, position, slice_str(truth ? "true" : "false"));
	}
	member->passed_n = n;
	return true;
}

/* Why this run, or part, may not be migrated now; NULL: it may. */
static const char *under_way(const struct member *member)
{
	const struct db_value *cells = member->cells;
	bool at_job = member->current && cells[JOB].i && !run_is_terminal(run_status_of(cells[STATUS].s));

	if (cells[OWNED].i || at_job) /* mutant: migrated-at-work -> if (0) */
		return "it is RUNNING";
	if (member->current && is_text(&cells[AWAITS], RUN_AWAITS_PERSON) &&
	    is_text(&cells[STEP_STATUS], RUN_STEP_UNKNOWN))
		return "it is UNKNOWN";
	if (cells[DOUBT].i) /* mutant: migrated-in-doubt -> if (0) */
		return "it is not known what its last try has done";
	/* What is tried again by itself is the same request (I8); one that a person has to look at may become another. */
	if (cells[UNDO].i >= 0 && cells[ATTEMPT].i && !is_text(&cells[AWAITS], RUN_AWAITS_PERSON) &&
	    !is_text(&cells[AWAITS], RUN_AWAITS_CHILD) && slice_is(cells[STATUS].s, RUN_CANCELLING))
		return "it is being undone";
	return NULL;
}

static enum hx_code check_rest(struct walk *w, const struct member *member)
{
	const struct run_definition *from = member->from;
	int64_t undo = member->cells[UNDO].i;
	size_t position = undo >= 0 ? (size_t)undo : member->stood;
	const char *what = under_way(member);

	if (!what)
		return HX_OK;
	*w->ret_detail = position < from->steps_n
				 ? text_printf(w->arena, "step \"%s\": %s", from->steps[position].name, what)
				 : what;
	return HX_WRONG_STATUS;
}

static int64_t undo_now(const struct member *member)
{
	for (size_t i = 0; i < member->passed_n; i++)
		if ((int64_t)member->passed[i].position == member->cells[UNDO].i)
			return (int64_t)member->passed[i].to;
	return -1;
}

/* "event paid", under the name that it has from now on; only where it waits for such a one. */
static void put_awaits(const struct member *member, struct strbuf *out)
{
	const struct db_value *awaits = &member->cells[AWAITS];
	struct run_awaited awaited = {NULL, NULL};

	if (member->begun && member->current && awaits->type != DB_NULL && !is_text(awaits, RUN_AWAITS_PERSON) &&
	    member->stands < member->to->steps_n)
		awaited = run_step_awaits(&member->to->steps[member->stands]);
	if (!awaited.prefix) {
		strbuf_add_str(out, "null");
		return;
	}
	strbuf_addf(out, "\"%s%s\"", awaited.prefix, awaited.name); /* names need no escapes */
}

static bool goes_on(const struct member *member)
{
	struct slice status = member->cells[STATUS].s;

	if (slice_is(status, RUN_CANCELLING))
		return !is_text(&member->cells[AWAITS], RUN_AWAITS_PERSON);
	return slice_is(status, RUN_PENDING) || slice_is(status, RUN_WAITING);
}

/*
 * It was called, for certain in vain, and will be called again: what is asked for then may be something else, and one key is for one
 * request. (A run that has failed gets another key by its retry.)
 */
static bool is_other_request(const struct member *member)
{
	const struct db_value *cells = member->cells;

	return member->begun && cells[ATTEMPT].i && cells[UNDO].i < 0 && member->stood < member->from->steps_n &&
	       member->from->steps[member->stood].type == RUN_TASK && !slice_is(cells[STATUS].s, RUN_FAILED);
}

static void put_member(struct walk *w, const struct member *member)
{
	const struct db_value *cells = member->cells;
	bool stays = member->begun && cells[AT_STEP].i == (int64_t)member->stood;
	struct strbuf *out = &w->runs;

	strbuf_addf(out, "%s[%lld,%lld,", out->n > 1 ? "," : "", (long long)cells[SUBJECT].i,
		    (long long)cells[VERSION].i);
	if (member->to->scope)
		json_quote(slice_str(member->to->scope), out);
	else
		strbuf_add_str(out, "null");
	strbuf_addf(out, ",%lld,%lld,", stays ? (long long)member->stands : -1LL, (long long)undo_now(member));
	put_awaits(member, out);
	strbuf_addf(out, ",%d,%d]", goes_on(member), is_other_request(member));
	for (size_t i = 0; i < member->passed_n; i++)
		if (member->passed[i].position != member->passed[i].to)
			strbuf_addf(&w->positions, "%s[%lld,%zu,%zu]", w->positions.n > 1 ? "," : "",
				    (long long)cells[SUBJECT].i, member->passed[i].position, member->passed[i].to);
	w->m->runs_n++;
}

/* Of which part it is, by now and then. */
static enum hx_code find_part(struct walk *w, struct member *member)
{
	const struct db_value *scope = &member->cells[SCOPE];
	struct run_misfit misfit;

	member->from = w->row->definition;
	member->to = w->m->to->definition;
	if (member->cells[SUBJECT].i == w->row->subject)
		return HX_OK;
	if (!run_definition_part(w->row->machine->definition, scope->s))
		return HX_BUSY;
	member->to = run_fit_part(w->renames, member->from, member->to, scope->s, &member->from, &misfit);
	return member->to ? HX_OK : refuse(w, &misfit);
}

/* What is done, as steps of the other version: the same, under the names and with the save_as that they have there. */
static const struct run_done *done_there(const struct walk *w, const struct member *member)
{
	const struct run_done *was = w->row->done;
	struct run_done *first = NULL, *last = NULL;

	for (size_t i = member->passed_n; i-- > 0 && was; was = was->before) {
		struct run_done *done = arena_alloc(w->arena, sizeof *done);

		if (!done)
			break;
		*done = *was;
		done->before = NULL;
		done->step = &member->to->steps[member->passed[i].to];
		if (last)
			last->before = done;
		first = first ? first : done;
		last = done;
	}
	return first;
}

static void decide_attributes(struct walk *w, const struct member *member)
{
	const struct run_done *done = done_there(w, member);
	struct slice now;
	LOCAL_STRBUF(state, STATE_BYTES_MAX);
	LOCAL_STRBUF(steps, STATE_BYTES_MAX);

	run_write_state(done, &state);
	run_write_steps(done, &steps);
	struct expression_env env = {.input = json_trust(w->row->input),
				     .state = json_trust(strbuf_slice(&state)),
				     .steps = json_trust(strbuf_slice(&steps))};
	if (state.failed || steps.failed)
		return;
	now = attributes_of(&member->to->attributes, &env, w->arena);
	if (!slice_eq(now, w->row->attributes))
		w->m->attributes = now.p ? now : slice_str("");
}

static enum hx_code decide_member(struct walk *w, const struct db_value *cells)
{
	struct member member = {.cells = cells};
	struct run_misfit misfit;
	enum hx_code code = find_part(w, &member);

	if (code)
		return code;
	if (!take_passed(w, &member))
		return w->arena->failed ? HX_TOO_LARGE : HX_BUSY;
	member.current = cells[AT_STEP].i == (int64_t)member.stood || cells[UNDO].i >= 0;
	member.begun = member.current && (cells[ATTEMPT].i || cells[REDO].i || cells[STOOD].i ||
					  cells[STEP_STATUS].type != DB_NULL || cells[AWAITS].type != DB_NULL);
	code = check_rest(w, &member);
	if (code)
		return code;
	if (!run_fit(w->renames, member.from, member.to, member.passed, member.passed_n, member.begun, &member.stands,
		     &misfit))
		return refuse(w, &misfit);
	put_member(w, &member);
	if (cells[SUBJECT].i == w->row->subject)
		decide_attributes(w, &member);
	return HX_OK;
}

/* The time of the whole counts from where it did. */
static int64_t times_out_at(const struct run_row *row, const struct run_machine *to)
{
	int64_t was = row->definition->timeout_ms, is = to->definition->timeout_ms;

	if (is == was)
		return row->times_out_at;
	if (!was || !row->times_out_at || row->times_out_at == INT64_MAX)
		return run_times_out_at(to->definition, row->now);
	return run_times_out_at(to->definition, row->times_out_at - was);
}

static struct slice keep_list(struct arena *arena, struct strbuf *list)
{
	strbuf_add_char(list, ']');
	if (list->n > 2)
		return arena_keep(arena, list);
	strbuf_release(list);
	return slice_of(NULL, 0);
}

static struct slice list_names(struct json renames, struct arena *arena)
{
	struct json_iter it = json_iter_of(renames);
	struct json was, is;
	struct strbuf list;

	strbuf_init(&list, LIST_BYTES_MAX);
	strbuf_add_char(&list, '[');
	while (json_iter_member(&it, &was, &is))
		strbuf_addf(&list, "%s[%.*s,%.*s]", list.n > 1 ? "," : "", SLICE_ARGS(was.raw), SLICE_ARGS(is.raw));
	return keep_list(arena, &list);
}

static enum hx_code decide_names(struct walk *w)
{
	struct json renamed = json_trust(w->row->renamed.p ? w->row->renamed : slice_str("{}"));
	struct run_misfit misfit;
	LOCAL_STRBUF(text, LIST_BYTES_MAX);

	if (!run_fit_names(w->renames, renamed, w->row->machine->definition, w->m->to->definition, w->arena, &text,
			   &misfit))
		return refuse(w, &misfit);
	w->m->renamed = text.n > 2 ? arena_copy(w->arena, strbuf_slice(&text)) : slice_of(NULL, 0);
	w->m->names = list_names(w->renames, w->arena);
	return text.failed || w->arena->failed ? HX_TOO_LARGE : HX_OK;
}

static enum hx_code decide_runs(struct walk *w, const struct db_rows *runs)
{
	enum hx_code code = HX_OK;

	if (runs->n > RUN_MIGRATE_PARTS_MAX + 1 || w->steps->n > STEPS_MAX) {
		*w->ret_detail = "its branches, bodies and tasks of maps are more than 10000";
		return HX_TOO_LARGE;
	}
	for (size_t i = 0; i < runs->n && !code; i++)
		code = decide_member(w, db_cell(runs, i, 0));
	if (!code && w->at < w->steps->n)
		code = HX_BUSY; /* of a part that is younger */
	return code;
}

enum hx_code run_migrate_decide(const struct db_rows *rows, const struct run_row *row, struct arena *arena,
				struct run_migration *m, const char **ret_detail)
{
	struct walk w = {.row = row,
			 .m = m,
			 .arena = arena,
			 .renames = json_trust(m->renames.p ? m->renames : slice_str("{}")),
			 .steps = &rows[MIGRATE_LINE_STEPS],
			 .ret_detail = ret_detail};
	enum hx_code code;

	m->runs_n = 0;
	strbuf_init(&w.runs, LIST_BYTES_MAX);
	strbuf_init(&w.positions, LIST_BYTES_MAX);
	strbuf_add_char(&w.runs, '[');
	strbuf_add_char(&w.positions, '[');
	code = decide_names(&w);
	if (!code)
		code = decide_runs(&w, &rows[MIGRATE_LINE_RUNS]);
	m->runs = keep_list(arena, &w.runs);
	m->positions = keep_list(arena, &w.positions);
	m->times_out_at = times_out_at(row, m->to);
	m->reason = slice_str(text_printf(arena, "migrated from version %lld to version %lld",
					  (long long)row->machine->version, (long long)m->version));
	return code ? code : arena->failed ? HX_TOO_LARGE : HX_OK;
}

/* ---- writing ---- */

static void add_parts(struct unit *unit, const struct stamp *stamp, int64_t subject, const struct run_migration *m)
{
	struct db_value runs = db_text(m->runs), itself = db_int(subject), node = db_str(stamp->node);
	struct db_value n = db_int(m->runs_n - 1);

	UNIT_ADD(unit, UNIT_ANY, &stmt_lock, runs);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_unchanged, runs, n, itself); /* mutant: parts-unguarded -> (void)n; */
	UNIT_ADD(unit, UNIT_ANY, &stmt_subjects, runs, itself, db_int(stamp->op), db_int(stamp->at.ms), node);
	UNIT_ADD(unit, UNIT_ANY, &stmt_histories, runs, itself, node);
}

void run_migrate_add(struct unit *unit, const struct stamp *stamp, const struct run_row *row,
		     const struct run_migration *m)
{
	struct db_value runs = db_text(m->runs);

	if (m->runs_n > 1)
		add_parts(unit, stamp, row->subject, m);
	UNIT_ADD(unit, UNIT_ANY, &stmt_notes, runs, db_optional(m->requester), db_text(m->reason));
	UNIT_ADD(unit, UNIT_ANY, &stmt_rows, runs, db_int(m->version), db_optional(m->renamed));
	UNIT_ADD(unit, UNIT_ANY, &stmt_line_due, runs);
	UNIT_ADD(unit, UNIT_ANY, &stmt_line_left, runs);
	if (m->times_out_at != row->times_out_at)
		UNIT_ADD(unit, UNIT_ANY, &stmt_time, db_int(row->subject),
			 m->times_out_at ? db_int(m->times_out_at) : db_null());
	if (m->attributes.p)
		attributes_of_run_set(unit, row->subject, m->attributes);
	if (m->positions.p) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_leave, db_text(m->positions));
		UNIT_ADD(unit, UNIT_ANY, &stmt_arrive, db_text(m->positions));
	}
	if (m->names.p) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_children, runs, db_text(m->names));
		UNIT_ADD(unit, UNIT_ANY, &stmt_decisions, runs, db_text(m->names));
	}
	unit_wake(unit, RUN_TOPIC);
}
