/* Definitions: the list, and a new version. Putting one waits for the store, so it has a thread of its own. */
#include <pthread.h>
#include <stdlib.h>

#include "base/json_string.h"
#include "http/api.h"

#define FINDINGS_BYTES_MAX (64u << 20)

static void add_definition(void *context, const struct entity_machine *machine, int64_t version)
{
	struct strbuf *text = context;
	const struct workflow *w = machine->workflow;

	strbuf_add_str(text, text->p[text->n - 1] == '[' ? "" : ",");
	strbuf_add_str(text, "{\"name\":");
	json_quote(slice_str(w->name), text);
	strbuf_addf(text, ",\"kind\":\"entity\",\"version\":%lld,\"module\":", (long long)version);
	json_quote(slice_str(w->module), text);
	strbuf_addf(text, ",\"steps\":%zu,\"definition\":", w->steps_n);
	strbuf_add_slice(text, w->text);
	strbuf_add_char(text, '}');
}

void api_definition_list(struct http_call *call)
{
	struct strbuf text;

	strbuf_init(&text, API_TEXT_BYTES_MAX);
	strbuf_add_str(&text, "{\"items\":[");
	engine_each_machine(api_of(call)->engine, add_definition, &text);
	strbuf_add_str(&text, "],\"cursor\":null}");
	api_respond_json(call, 200, &text, 0);
	strbuf_release(&text);
}

/* ---- put ---- */

static void add_findings(const struct findings *findings, struct strbuf *text)
{
	strbuf_add_str(text, "\"findings\":[");
	for (const struct finding *f = findings->first; f; f = f->next) {
		struct strbuf line;

		strbuf_init(&line, 4096);
		finding_print(f, &line);
		strbuf_addf(text, "%s{\"severity\":\"%s\",\"line\":%zu,\"rule\":", f == findings->first ? "" : ",",
			    f->severity == FINDING_ERROR ? "error" : "warning", f->line);
		json_quote(slice_str(f->rule ? f->rule : ""), text);
		strbuf_add_str(text, ",\"text\":");
		json_quote(strbuf_slice(&line), text);
		strbuf_add_char(text, '}');
		strbuf_release(&line);
	}
	strbuf_add_char(text, ']');
}

static void respond_put(struct http_call *call, enum hx_code code, const struct findings *findings, int64_t version,
			const struct hx_error *err)
{
	struct strbuf text, members;

	strbuf_init(&text, API_TEXT_BYTES_MAX);
	strbuf_init(&members, API_TEXT_BYTES_MAX);
	add_findings(findings, &members);
	if (code == HX_OK) {
		strbuf_add_str(&text, "{\"name\":");
		json_quote(call_param(call, "name"), &text);
		strbuf_addf(&text, ",\"version\":%lld,%s}", (long long)version, members.p);
		api_respond_json(call, 200, &text, version);
	} else {
		/* To the caller it is the definition that is wrong, not our configuration. */
		struct problem problem = {
			.code = code == HX_CONFIG_ERROR ? HX_DEFINITION_INVALID : code,
			.detail = slice_str(err->detail),
			.members = strbuf_slice(&members),
		};

		http_respond_problem(call->exchange, &problem);
	}
	strbuf_release(&members);
	strbuf_release(&text);
}

static void *put(void *context)
{
	struct http_call *call = context;
	struct findings findings;
	struct arena arena;
	struct hx_error err = {0};
	int64_t version = 0;
	enum hx_code code;

	arena_init(&arena, FINDINGS_BYTES_MAX);
	findings_init(&findings, &arena);
	code = engine_put_definition(api_of(call)->engine, call_param(call, "name"), call->request->body, &findings,
				     &version, &err);
	respond_put(call, code, &findings, version, &err);
	arena_release(&arena);
	return NULL;
}

void api_definition_put(struct http_call *call)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, put, call))
		http_respond_code(call->exchange, HX_BUSY, NULL);
	pthread_attr_destroy(&attr);
}
