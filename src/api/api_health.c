/* Is it alive, does it take work? The numbers are in api_metrics.c. */
#include "api/api.h"
#include "model/text.h"

void api_healthz(struct http_call *call)
{
	http_respond_text(call->exchange, 200, HTTP_PLAIN_TEXT, slice_str("ok\n"));
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
	else if (clock_doubted_ms(api_parts(call)->clock))
		words = "ready; this machine's clock has jumped: expiry waits\n";
	else if (clock_doubted_ms(api_parts(call)->store_clock))
		words = "ready; the clock of the store's machine has jumped: retention waits\n";
	http_respond_text(call->exchange, why ? 503 : 200, HTTP_PLAIN_TEXT, slice_str(words ? words : "not ready\n"));
}

/* Whoever asks makes us ask the store, for next to nothing: so what is said is true of this moment, also on an idle node. */
void api_readyz(struct http_call *call)
{
	struct readiness *readiness = arena_zalloc(call->arena, sizeof *readiness);

	if (!readiness || !atomic_load(&api_of(call)->ready)) {
		http_respond_text(call->exchange, 503, HTTP_PLAIN_TEXT, slice_str("not ready\n"));
		return;
	}
	readiness->question.answered = readiness_known;
	readiness->call = call;
	sentinel_ask(api_parts(call)->sentinel, &readiness->question);
}
