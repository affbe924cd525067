/* A sweep that an external janitor asks for. */
#include "api/api.h"

static void swept(void *context, enum hx_code code, int64_t reverted, int64_t held)
{
	struct http_call *call = context;
	struct strbuf text;

	if (code) {
		http_respond_code(call->exchange, code, NULL);
		return;
	}
	strbuf_init(&text, 200);
	strbuf_addf(&text, "{\"reverted\":%lld,\"held\":%lld}", (long long)reverted, (long long)held);
	api_answer(call, 200, &text, 0);
}

void api_module_sweep(struct http_call *call)
{
	enum hx_code code = engine_sweep(api_of(call)->engine, call_param(call, "module"), swept, call);

	if (code)
		http_respond_code(call->exchange, code,
				  code == HX_NOT_FOUND ? "no janitor is declared for this module" : NULL);
}
