/* See problem.h. */
#include "serve/problem.h"

#include "base/json_write.h"
#include "model/text.h"

#define FIELDS_MAX 3

void problem_write(const struct problem *problem, struct strbuf *sb)
{
	const char *name = hx_code_name(problem->code);
	struct slice title = slice_str(hx_code_text(problem->code));

	strbuf_addf(sb, "{\"type\":\"urn:hapax:problem:%s\"", name);
	json_more_text(sb, "title", title);
	json_more_int(sb, "status", hx_code_http_status(problem->code));
	json_more_text(sb, "detail", problem->detail.n > 0 ? problem->detail : title);
	json_more_word(sb, "code", name);
	if (problem->members.n > 0) {
		strbuf_add_char(sb, ',');
		strbuf_add_slice(sb, problem->members);
	}
	strbuf_add_char(sb, '}');
}

static void write_fields(const struct problem *problem, struct arena *arena, struct http_answer *answer)
{
	struct wire_field *fields = arena_alloc(arena, FIELDS_MAX * sizeof *fields);
	unsigned after_s = problem->retry_after_s;
	size_t n = 0;

	if (!fields)
		return;
	fields[n++] = (struct wire_field){slice_str("Content-Type"), slice_str("application/problem+json")};
	if (after_s == 0 && (answer->status == 409 || answer->status == 429 || answer->status == 503))
		after_s = problem->code == HX_RESPONSE_NOT_STORED ? PROBLEM_RETRY_LATE_S : PROBLEM_RETRY_AFTER_S;
	if (after_s > 0)
		fields[n++] = (struct wire_field){slice_str("Retry-After"),
						  slice_str(text_printf(arena, "%u", after_s))};
	if (problem->field.name.n > 0)
		fields[n++] = problem->field;
	answer->fields = (struct wire_fields){fields, n};
}

void problem_answer(const struct problem *problem, struct arena *arena, struct http_answer *ret_answer)
{
	struct http_answer answer = {.status = hx_code_http_status(problem->code), .code = problem->code};

	ASSERT(problem->code != HX_OK);
	LOCAL_STRBUF(sb, arena->max_bytes);
	problem_write(problem, &sb);
	if (!sb.failed) {
		write_fields(problem, arena, &answer);
		answer.body = arena_copy(arena, strbuf_slice(&sb));
	}
	if (sb.failed || arena->failed)
		answer = (struct http_answer){.status = answer.status, .code = problem->code};
	*ret_answer = answer;
}

void http_respond_problem(struct http_exchange *exchange, const struct problem *problem)
{
	struct http_answer answer;

	problem_answer(problem, http_exchange_arena(exchange), &answer);
	http_respond(exchange, &answer);
}

void http_respond_code(struct http_exchange *exchange, enum hx_code code, const char *detail)
{
	http_respond_problem(exchange, &(struct problem){.code = code, .detail = slice_str(detail)});
}

void http_respond_error(struct http_exchange *exchange, const struct hx_error *err)
{
	http_respond_code(exchange, err->code, err->detail);
}
