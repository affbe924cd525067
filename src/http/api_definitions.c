/* Definitions: the list, and a new version. Putting one waits for the store, so the engine does it in a thread. */
#include "base/json_string.h"
#include "engine/definitions.h"
#include "http/api.h"

#define FINDINGS_BYTES_MAX (64u << 20)

static void add_definition(void *context, const struct machine *machine)
{
	struct strbuf *text = context;
	const struct definition *d = machine->definition;

	strbuf_add_str(text, text->p[text->n - 1] == '[' ? "" : ",");
	strbuf_add_str(text, "{\"name\":");
	json_quote(slice_str(d->name), text);
	strbuf_addf(text, ",\"kind\":\"%s\",\"version\":%lld,\"module\":", d->kind, (long long)machine->version);
	json_quote(slice_str(d->module), text);
	strbuf_addf(text, ",\"steps\":%zu,\"definition\":", d->steps_n);
	strbuf_add_slice(text, d->text);
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

/* In the exchange's arena. The findings have one of their own, because the exchange's may be in use elsewhere. */
struct put_call {
	struct definition_put put;
	struct http_call *call;
	struct findings findings;
	struct arena arena;
};

static void put_done(struct definition_put *definition, enum hx_code code)
{
	struct put_call *put = (struct put_call *)definition;
	struct arena arena = put->arena;

	respond_put(put->call, code, &put->findings, definition->version, &definition->err);
	arena_release(&arena); /* our copy: the exchange has gone with the answer */
}

void api_definition_put(struct http_call *call)
{
	struct put_call *put = arena_zalloc(call->arena, sizeof *put);
	enum hx_code code;

	if (!put) {
		http_respond_code(call->exchange, HX_BUSY, NULL);
		return;
	}
	put->call = call;
	arena_init(&put->arena, FINDINGS_BYTES_MAX);
	findings_init(&put->findings, &put->arena);
	put->put = (struct definition_put){
		.name = call_param(call, "name"),
		.text = call->request->body,
		.findings = &put->findings,
		.done = put_done,
	};
	code = engine_put_definition(api_of(call)->engine, &put->put);
	if (code)
		http_respond_code(call->exchange, code,
				  code == HX_BUSY ? "another definition is being put: try again" : NULL);
}
