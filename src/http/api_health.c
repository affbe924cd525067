/* Is it alive, does it take work? The numbers are in api_metrics.c. */
#include "http/api.h"

void api_respond_text(struct http_call *call, int status, struct slice text)
{
	struct wire_field fields[] = {
		{slice_str("Content-Type"), slice_str("text/plain; version=0.0.4; charset=utf-8")}};
	struct http_answer answer = {.status = status, .fields = {fields, 1}, .body = text};

	http_respond(call->exchange, &answer);
}

void api_healthz(struct http_call *call)
{
	api_respond_text(call, 200, slice_str("ok\n"));
}

void api_readyz(struct http_call *call)
{
	if (!atomic_load(&api_of(call)->ready))
		api_respond_text(call, 503, slice_str("not ready\n"));
	else if (!engine_has_store(api_of(call)->engine))
		api_respond_text(call, 503, slice_str("not ready: the store is lost\n"));
	else
		api_respond_text(call, 200, slice_str("ready\n"));
}
