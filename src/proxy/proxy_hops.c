/*
 * Max-Forwards (RFC 9110, 7.6.2): how many more a TRACE or an OPTIONS may pass through. Each takes one off; whoever gets a 0 answers
 * in the place of the service. Other methods' fields go on as they came.
 */
#include "base/digits.h"
#include "proxy/proxy_job.h"
#include "serve/problem.h"

#define REFLECTED_BYTES_MAX 65536

static bool counts_hops(const struct wire_request *request)
{
	return slice_is(request->method, "TRACE") || slice_is(request->method, "OPTIONS");
}

enum proxy_hops proxy_hops_left(const struct wire_request *request, uint32_t *ret_left)
{
	size_t n = 0;
	const struct wire_field *field = wire_find(request->head.fields, "Max-Forwards", &n);
	uint64_t left;

	if (!field || !counts_hops(request))
		return HOPS_UNLIMITED;
	if (n > 1 || field->value.n > 9 || !digits_number(field->value, UINT32_MAX, &left))
		return HOPS_UNREADABLE;
	*ret_left = (uint32_t)left;
	return left == 0 ? HOPS_NONE : HOPS_SOME;
}

/* What must not be shown to whoever can make a browser send a TRACE. */
static const char *const secrets[] = {"authorization", "cookie", "proxy-authorization", "x-api-key", NULL};

static void reflect(const struct wire_request *request, struct strbuf *text)
{
	strbuf_add_slice(text, request->method);
	strbuf_add_char(text, ' ');
	strbuf_add_slice(text, request->target);
	strbuf_addf(text, " HTTP/1.%u\r\n", request->head.minor);
	for (size_t i = 0; i < request->head.fields.n; i++) {
		const struct wire_field *field = &request->head.fields.at[i];

		if (slice_in_nocase(field->name, secrets))
			continue;
		strbuf_add_slice(text, field->name);
		strbuf_add_str(text, ": ");
		strbuf_add_slice(text, field->value);
		strbuf_add_str(text, "\r\n");
	}
	strbuf_add_str(text, "\r\n");
}

static void answer_trace(struct http_exchange *exchange)
{
	struct wire_field type = {slice_str("Content-Type"), slice_str("message/http")};

	LOCAL_STRBUF(text, REFLECTED_BYTES_MAX);
	reflect(&http_exchange_request(exchange)->wire, &text);
	if (text.failed)
		http_respond_code(exchange, HX_NO_MEMORY, NULL);
	else
		http_respond(exchange,
			     &(struct http_answer){.status = 200, .fields = {&type, 1}, .body = strbuf_slice(&text)});
}

void proxy_answer_last_hop(struct http_exchange *exchange)
{
	struct wire_field allow = {slice_str("Allow"),
				   slice_str("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE")};

	if (slice_is(http_exchange_request(exchange)->wire.method, "TRACE"))
		answer_trace(exchange);
	else
		http_respond(exchange, &(struct http_answer){.status = 200, .fields = {&allow, 1}});
}
