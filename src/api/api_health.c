/* Is it alive, does it take work? The numbers are in api_metrics.c. */
#include "api/api.h"
#include "model/text.h"

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

/* In the exchange's arena. */
struct readiness {
	struct sentinel_question question;
	struct http_call *call;
};

static void readiness_known(struct sentinel_question *question, const char *why)
{
	struct http_call *call = ((struct readiness *)question)->call;
	const char *words = "ready\n";

	if (why)
		words = text_printf(call->arena, "not ready: %s\n", why);
	else if (clock_doubted_ms(engine_clock(api_of(call)->engine)))
		words = "ready; this machine's clock has jumped: expiry waits\n";
	else if (clock_doubted_ms(engine_store_clock(api_of(call)->engine)))
		words = "ready; the clock of the store's machine has jumped: retention waits\n";
	say(call, why ? 503 : 200, words ? words : "not ready\n");
}

/* Whoever asks makes us ask the store, for next to nothing: so what is said is true of this moment, also on an idle node. */
void api_readyz(struct http_call *call)
{
	struct readiness *readiness = arena_zalloc(call->arena, sizeof *readiness);

	if (!readiness || !atomic_load(&api_of(call)->ready)) {
		say(call, 503, "not ready\n");
		return;
	}
	readiness->question.answered = readiness_known;
	readiness->call = call;
	engine_ask_store(api_of(call)->engine, &readiness->question);
}
