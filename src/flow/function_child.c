/*
 * Children of a function: runs, or functions, that an entry has started. Made in the unit that takes the entry; their end makes the
 * function due (run_child_ended()), and an entry that is dropped leaves them the word to be cancelled (run_children.h).
 */
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_write.h"
#include "flow/attribute.h"
#include "flow/function_parts.h"
#include "flow/run_children.h"
#include "flow/run_count.h"
#include "flow/subject_change.h"

#define ROWS_BYTES_MAX (160u << 20)

/* clang-format off */

/* Rows: id, workflow, version of its definition, key, input, name and n of the entry, when its time is over, attributes; and of a function
 * its retry and on_failure. A function has the version 0 and is not due here. */
#define INTO_KID INTO_RUN(", parent, parent_step, parent_n, child, depth")
#define KID(pick, number)                                                                                              \
	" SELECT " number("0") ", p.workspace, " pick("1") ", " number("2") ","                                            \
	" (SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM hx_run x WHERE x.workspace = p.workspace AND x.run_key = " pick("3") ") THEN " pick("3") " END),"  \
	" p.requester, p.trace, " pick("4") ", CASE WHEN " number("2") " > 0 THEN ?3 END, ?3, " number("7") ", " pick("8") ","  \
	" p.subject, " pick("5") ", " number("6") ", 'open', p.depth + 1"

DB_STMT(stmt_runs, "function_kids_runs", "iti", "",
	INTO_KID KID(SQLITE_PICK, SQLITE_PICK) " FROM json_each(?2), hx_run p WHERE p.subject = ?1",
	.pg_sql = INTO_KID KID(PG_PICK, PG_NUMBER) " FROM json_array_elements(?2::json) AS t(r), hx_run p WHERE p.subject = ?1");

#define MADE " FROM hx_run k WHERE k.parent = ?1 AND k.child = 'open' AND NOT EXISTS (SELECT 1 FROM hx_subject y WHERE y.id = k.subject)"

#define INTO_OF_KID INTO_FUNCTION("") " SELECT k.subject, k.workspace, k.workflow, ?2, "
DB_STMT(stmt_functions, "function_kids_functions", "iit", "",
	INTO_OF_KID SQLITE_PICK("9") ", " SQLITE_PICK("10") ", k.times_out_at, k.times_out_at - k.created_at FROM json_each(?3) JOIN hx_run k ON k.subject = " SQLITE_PICK("0")
	" WHERE k.parent = ?1 AND k.definition_version = 0",
	.pg_sql = INTO_OF_KID PG_PICK("9") ", " PG_PICK("10") ", k.times_out_at, k.times_out_at - k.created_at FROM json_array_elements(?3::json) AS t(r) JOIN hx_run k ON k.subject = "
		  PG_NUMBER("0") " WHERE k.parent = ?1 AND k.definition_version = 0");

DB_STMT(stmt_subjects, "function_kids_subjects", "iiiiit", "",
	INTO_SUBJECT NEW_SUBJECT("k.subject", "CASE WHEN k.definition_version = 0 THEN ?2 ELSE ?3 END", "'PENDING'", "?4", "?5", "?6") MADE);

DB_STMT(stmt_histories, "function_kids_histories", "iit", "",
	INTO_HISTORY " SELECT s.id, s.seq, '', s.status, s.version, s.fence, s.op, ?3, s.updated_at, s.head"
	" FROM hx_run k JOIN hx_subject s ON s.id = k.subject WHERE k.parent = ?1 AND s.op = ?2 AND s.seq = 1");

/* ?2: JSON, places of entries. */
DB_STMT(stmt_ask, "function_kids_ask", "it", "",
	"UPDATE hx_run SET asked = 'cancel', child = 'open' WHERE parent = ?1 AND (asked IS NULL OR asked NOT IN ('cancel', 'cancelling'))"
	" AND child <> 'cancelled' AND subject IN (SELECT e.child FROM hx_entry e WHERE e.run = ?1 AND e.child IS NOT NULL"
	" AND CAST(e.i AS text) IN (SELECT value FROM {list2}))");

/* clang-format on */

static bool is_polled(const struct function_work *w, struct slice name)
{
	for (size_t i = 0; i < w->polled_n; i++)
		if (slice_eq(w->polled[i], name))
			return true;
	return false;
}

static bool fail_child(struct function_work *w, struct function_entry *e, const char *code, const char *words)
{
	w->seq--; /* the change that asks for it is the one that fails it */
	e->error = function_words(w, code, words);
	work_change(w, e, ENTRY_FAILED);
	return true;
}

bool function_bear(struct function_work *w, struct function_entry *e, const struct function_change *c,
		   const struct function_request *rq, struct id_source *ids, struct wall_time now)
{
	const struct run_machine *machine = rq->machine_of(rq->machine_context, c->workflow, RUN_NEWEST);
	struct function_birth *birth;

	if (!machine && !is_polled(w, c->workflow))
		return fail_child(w, e, "NOT_FOUND", "there is no such workflow, and nobody polls for such a function");
	if (w->row.depth >= RUN_DEPTH_MAX)
		return fail_child(w, e, "TOO_DEEP", "children of children are at most 16 deep");
	birth = arena_zalloc(w->arena, sizeof *birth);
	if (!birth)
		return work_refuse(w, HX_TOO_LARGE, "there is no memory for it");
	e->child = id_next(ids, now);
	*birth = (struct function_birth){w->births, e, machine, c->workflow, c->input};
	w->births = birth;
	return true;
}

static bool is_function(const struct function_birth *birth)
{
	return !birth->machine || birth->machine->definition->is_function;
}

/* What its definition says of it. */
static void add_defined(struct function_work *w, const struct function_birth *birth, struct strbuf *text)
{
	const struct run_definition *definition = birth->machine ? birth->machine->definition : NULL;
	struct run_spec spec = {.workspace = w->row.workspace, .machine = birth->machine, .input = birth->input};

	if (definition)
		run_describe(&spec, w->arena);
	w->kids_described |= spec.attributes.p != NULL;
	json_next_text(text, spec.attributes);
	json_next_text(text, slice_str(definition ? definition->retry_json : NULL));
	json_next_text(text, slice_str(definition ? function_on_failure(definition) : NULL));
	strbuf_add_char(text, ']');
}

static void add_birth(struct function_work *w, const struct function_birth *birth, struct strbuf *text)
{
	int64_t times_out_at = birth->machine ? run_times_out_at(birth->machine->definition, w->row.now) : 0;
	LOCAL_STRBUF(key, 4 * FUNCTION_NAME_BYTES_MAX + 128);

	entry_write_key(w->row.subject, birth->entry, &key);
	strbuf_addf(text, "%s[%lld,", text->n == 1 ? "" : ",", (long long)birth->entry->child);
	json_quote(birth->workflow, text);
	strbuf_addf(text, ",%lld,", birth->machine ? (long long)birth->machine->version : 0LL);
	json_quote(strbuf_slice(&key), text);
	strbuf_add_char(text, ',');
	json_quote(birth->input, text);
	strbuf_add_char(text, ',');
	json_quote(birth->entry->name, text);
	strbuf_addf(text, ",%lld,", (long long)birth->entry->n);
	if (times_out_at)
		strbuf_addf(text, "%lld", (long long)times_out_at);
	else
		strbuf_add_str(text, "null");
	add_defined(w, birth, text);
}

static bool is_dropped_kid(const struct function_entry *e)
{
	return e->kind == ENTRY_CHILD && e->changed && e->state == ENTRY_DROPPED;
}

struct slice work_places(struct function_work *w, bool (*is)(const struct function_entry *entry))
{
	struct strbuf text;

	strbuf_init(&text, ROWS_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < w->n; i++)
		if (is(w->entries[i]))
			strbuf_addf(&text, "%s\"%lld\"", text.n == 1 ? "" : ",", (long long)w->entries[i]->i);
	strbuf_add_char(&text, ']');
	return arena_keep(w->arena, &text);
}

static struct slice place_of_standing(struct function_work *w)
{
	LOCAL_STRBUF(text, 64);

	strbuf_addf(&text, "[\"%lld\"]", (long long)w->row.standing);
	return arena_copy(w->arena, strbuf_slice(&text));
}

void function_prepare_kids(struct function_work *w)
{
	struct strbuf text;

	if (w->asks_standing)
		w->kids_asked = place_of_standing(w);
	if (w->asks_children)
		w->kids_asked = work_places(w, is_dropped_kid);
	if (!w->births)
		return;
	strbuf_init(&text, ROWS_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (const struct function_birth *birth = w->births; birth; birth = birth->next)
		add_birth(w, birth, &text);
	strbuf_add_char(&text, ']');
	w->kids_made = arena_keep(w->arena, &text);
}

static void offer(struct unit *unit, const struct function_work *w)
{
	for (const struct function_birth *birth = w->births; birth; birth = birth->next)
		if (is_function(birth))
			function_offer(unit, w->row.workspace, birth->workflow, 1);
}

void function_write_kids(struct unit *unit, const struct stamp *stamp, const struct function_work *w)
{
	struct db_value id = db_int(w->row.subject), at = db_int(stamp->at.ms), node = db_str(stamp->node);

	if (w->kids_made.p) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_runs, id, db_text(w->kids_made), at);
		UNIT_ADD(unit, UNIT_ANY, &stmt_functions, id, at, db_text(w->kids_made));
		if (w->kids_described)
			attributes_of_new_children(unit, w->row.subject);
		UNIT_ADD(unit, UNIT_ANY, &stmt_subjects, id, db_int(function_kind()), db_int(run_kind()),
			 db_int(stamp->op), at, node);
		UNIT_ADD(unit, UNIT_ANY, &stmt_histories, id, db_int(stamp->op), node);
		run_count_made(unit, w->row.subject, stamp->op);
		unit_wake(unit, RUN_TOPIC);
		offer(unit, w);
	}
	if (w->kids_asked.p) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_ask, id, db_text(w->kids_asked));
		unit_wake(unit, RUN_TOPIC);
	}
}
