/* See embed_unit.h. */
#include "gate/embed_unit.h"

#include <stdio.h>

#include "base/latch.h"
#include "model/sql_text.h"
#include "task/states.h"

#define TEXTS_BYTES_MAX (HX_GATE_SQL_TEXTS_MAX * (4 * HX_GATE_SQL_BYTES_MAX + 1024u))

_Static_assert(HX_GATE_WRITES_MAX < UNIT_LINES_MAX, "one more line is the record's");
_Static_assert(HX_GATE_PARAMS_MAX <= STMT_PARAMS_MAX && HX_GATE_PARAMS_MAX == ACTION_PARAMS_MAX, "a parameter is one");

struct embed_text {
	struct embed_text *next;
	const char *source; /* as the program wrote it */
	struct db_stmt stmt;
	char name[40], in[STMT_PARAMS_MAX + 1];
};

/* ---- texts ---- */

void embed_texts_init(struct embed_texts *texts)
{
	*texts = (struct embed_texts){0};
	pthread_mutex_init(&texts->mutex, NULL);
	arena_init(&texts->arena, TEXTS_BYTES_MAX);
}

void embed_texts_release(struct embed_texts *texts)
{
	arena_release(&texts->arena);
	pthread_mutex_destroy(&texts->mutex);
}

/* Bytes are told apart by their type; all else has the type that the store infers from its place. */
static void letters_of(const struct hx_gate_write *write, char in[STMT_PARAMS_MAX + 1])
{
	for (size_t i = 0; i < write->params_n; i++)
		in[i] = write->params[i].type == HX_VALUE_BYTES ? 'b' : 's';
	in[write->params_n] = '\0';
}

static enum hx_code embed_unit_check(const struct hx_gate_write *write, struct hx_error *err)
{
	if (!write->sql || strlen(write->sql) > HX_GATE_SQL_BYTES_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "a statement has 1 to %d bytes", HX_GATE_SQL_BYTES_MAX);
	if (write->params_n > HX_GATE_PARAMS_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "a statement has at most %d parameters", HX_GATE_PARAMS_MAX);
	return HX_OK;
}

static enum hx_code embed_unit_add_text(struct embed_texts *texts, const struct hx_gate_write *write, const char *in,
					struct hx_error *err, struct embed_text **ret_text)
{
	struct action_statement statement = {0};
	struct embed_text *text;
	enum hx_code code;

	if (texts->n == HX_GATE_SQL_TEXTS_MAX)
		return error_set(err, HX_TOO_LARGE, "more than %d different statements: values are parameters",
				 HX_GATE_SQL_TEXTS_MAX);
	code = sql_text_parse_numbered(slice_str(write->sql), &texts->arena, err, &statement);
	if (!code && statement.params_n != write->params_n)
		code = error_set(err, HX_VALIDATION_ERROR, "there are %zu parameters and %zu values for them",
				 statement.params_n, write->params_n);
	if (code)
		return code;
	text = arena_zalloc(&texts->arena, sizeof *text);
	if (!text)
		return arena_error(&texts->arena, err);
	text->source = arena_copy(&texts->arena, slice_str(write->sql)).p;
	if (!text->source)
		return arena_error(&texts->arena, err);
	snprintf(text->name, sizeof text->name, "gate_write_%zu", texts->n);
	memcpy(text->in, in, sizeof text->in);
	text->stmt = (struct db_stmt){
		.name = text->name, .sql = statement.sql, .in = text->in, .out = "", .foreign = true};
	text->next = texts->first;
	texts->first = text;
	texts->n++;
	*ret_text = text;
	return HX_OK;
}

static enum hx_code embed_unit_text_of(struct embed_texts *texts, const struct hx_gate_write *write,
				       struct hx_error *err, const struct db_stmt **ret_stmt)
{
	char in[STMT_PARAMS_MAX + 1];
	struct embed_text *text;
	struct arena_mark mark;
	enum hx_code code = embed_unit_check(write, err);

	if (code)
		return code;
	letters_of(write, in);
	pthread_mutex_lock(&texts->mutex);
	for (text = texts->first; text; text = text->next)
		if (strcmp(text->source, write->sql) == 0 && strcmp(text->in, in) == 0)
			break;
	if (!text) {
		mark = arena_mark(&texts->arena);
		code = embed_unit_add_text(texts, write, in, err, &text);
		if (code) { /* what is refused takes no room */
			arena_rewind(&texts->arena, mark);
			texts->arena.failed = false;
		}
	}
	pthread_mutex_unlock(&texts->mutex);
	if (!code)
		*ret_stmt = &text->stmt;
	return code;
}

/* ---- the unit ---- */

static struct db_value embed_unit_value_of(const struct hx_value *value)
{
	switch (value->type) {
	case HX_VALUE_NULL:
		return db_null();
	case HX_VALUE_INT:
		return db_int(value->number);
	case HX_VALUE_TEXT:
		return db_text(slice_of(value->bytes, value->bytes_n));
	case HX_VALUE_BYTES:
		return db_blob(slice_of(value->bytes, value->bytes_n));
	}
	return db_null();
}

static enum hx_code add_write(struct embed_texts *texts, const struct hx_gate_write *write, struct unit *unit,
			      struct hx_error *err)
{
	struct db_value values[STMT_PARAMS_MAX];
	const struct db_stmt *stmt;
	enum hx_code code = embed_unit_text_of(texts, write, err, &stmt);

	if (code)
		return code;
	for (size_t i = 0; i < write->params_n; i++)
		values[i] = embed_unit_value_of(&write->params[i]);
	unit_add(unit, write->must_change ? UNIT_MUST : UNIT_ANY, stmt, (unsigned)write->params_n, values);
	return HX_OK;
}

enum hx_code embed_unit_build(struct embed_texts *texts, const struct gate_ask *complete, bool again, size_t writes_n,
			      const struct hx_gate_write *writes, struct unit *ret_unit, struct hx_error *err)
{
	struct hx_error why = {0};

	if (writes_n > HX_GATE_WRITES_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "at most %d statements go along", HX_GATE_WRITES_MAX);
	unit_init(ret_unit, /* op= */ 0);
	gate_add_completion_first(ret_unit, complete, again);
	for (size_t i = 0; i < writes_n; i++) {
		enum hx_code code = add_write(texts, &writes[i], ret_unit, &why);

		if (code)
			return error_set(err, code, "write %zu: %s", i, why.detail);
	}
	return HX_OK;
}

/* ---- running it ---- */

struct running {
	struct task task;
	struct seat seat;
	const struct unit *unit;
	int64_t op;
	struct embed_result *result;
	struct latch latch;
};

enum { RUNNING_NEW, RUNNING_SENT, RUNNING_DONE };

static void embed_unit_take_start(struct running *r, const struct answer *answer)
{
	r->op = answer->id;
	task_go(&r->task, RUNNING_SENT);
}

static void take_sent(struct running *r, const struct answer *answer)
{
	r->result->verdict = answer->result->verdict;
	r->result->line = answer->result->line;
	if (answer->result->verdict == UNIT_FAILED)
		r->result->error = answer->result->error;
	task_end(&r->task, HX_OK);
}

static void build_sent(const struct running *r, struct unit *unit)
{
	*unit = *r->unit;
	unit->op = r->op;
}

static const TASK_STATES(struct running) running_states[] = {
	[RUNNING_NEW] = {"new", embed_unit_take_start},
	[RUNNING_SENT] = {"sent", take_sent, build_sent},
	[RUNNING_DONE] = {"done"},
};

TASK_KIND(running_kind, "embedded", struct running, running_states);

static void embed_unit_done(struct seat *seat, enum hx_code code)
{
	struct running *r = (struct running *)((char *)seat - offsetof(struct running, seat));

	(void)code; /* a task that was cut short by a stop has not answered: UNIT_UNKNOWN */
	latch_open(&r->latch);
}

void embed_unit_run(const struct lanes *lanes, const struct gate_ask *complete, const struct unit *unit,
		    struct embed_result *ret_result)
{
	struct running r = {.unit = unit, .result = ret_result};
	enum hx_code code;

	*ret_result = (struct embed_result){.verdict = UNIT_UNKNOWN, .line = -1};
	task_init(&r.task, &running_kind, /* topic= */ 0);
	r.seat = (struct seat){.task = &r.task, .done = embed_unit_done};
	latch_init(&r.latch);
	/* What ends something that has begun is not refused because others wait to begin. */
	code = lane_submit_own(lanes_of(lanes, gate_write_subject(complete)), &r.seat);
	if (code) {
		ret_result->verdict = UNIT_FAILED;
		(void)error_set(&ret_result->error, HX_STORE_UNAVAILABLE, "%s", hx_code_text(code));
	} else {
		latch_wait(&r.latch);
	}
	latch_release(&r.latch);
}
