/* Is it alive, does it take work? The numbers are in api_metrics.c. */
#include "http/api.h"

void api_respond_text(struct http_call *call, int status, const char *type, struct slice text)
{
	struct wire_field fields[] = {{slice_str("Content-Type"), slice_str(type)}};
	struct http_answer answer = {.status = status, .fields = {fields, 1}, .body = text};

	http_respond(call->exchange, &answer);
}

static void say(struct http_call *call, int status, const char *words)
{
	api_respond_text(call, status, "text/plain; charset=utf-8", slice_str(words));
}

void api_healthz(struct http_call *call)
{
	say(call, 200, "ok\n");
}

void api_readyz(struct http_call *call)
{
	if (!atomic_load(&api_of(call)->ready))
		say(call, 503, "not ready\n");
	else if (!engine_has_store(api_of(call)->engine))
		say(call, 503, "not ready: the store is lost\n");
	else if (clock_doubted_ms(engine_clock(api_of(call)->engine)))
		say(call, 200, "ready; this machine's clock has jumped: expiry waits\n");
	else
		say(call, 200, "ready\n");
}
