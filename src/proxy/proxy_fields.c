/*
 * Header fields on their way through, as RFC 9110 (7.6) wants it of a proxy.
 *
 *   both ways   dropped: Connection and what it nominates, Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade (which is
 *               written anew where it is passed on, see proxy_upgrade.c);
 *               the length is written anew; Via is added
 *   upstream    Host is the client's (the url's only where an HTTP/1.0 client sent none), X-Forwarded-For gets the
 *               client's address at its end, Expect has been met by the server and is dropped. Everything else, the
 *               idempotency key among it, goes as it came
 *   downstream  our own markers are dropped: an upstream cannot say that something was replayed
 */
#include "model/text.h"
#include "proxy/proxy_job.h"
#include "wire/charset.h"

#define REQUEST_FIELDS_ADDED 7 /* those of an upgrade among them */

static bool is_hop_by_hop(struct slice name)
{
	static const char *const names[] = {"connection",        "keep-alive", "te", "trailer",
					    "transfer-encoding", "upgrade",    NULL};

	return slice_in_nocase(name, names) || (name.n > 6 && slice_starts_nocase(name, "proxy-"));
}

/* Connection: close and keep-alive nominate nothing, and most have no more. */
static bool nominates(struct wire_fields fields)
{
	for (size_t i = 0; i < fields.n; i++) {
		struct slice rest = fields.at[i].value, item;

		if (!slice_is_nocase(fields.at[i].name, "connection"))
			continue;
		while (slice_list_next(&rest, &item))
			if (!slice_is_nocase(item, "close") && !slice_is_nocase(item, "keep-alive"))
				return true;
	}
	return false;
}

static struct slice via(unsigned minor)
{
	return slice_str(minor == 0 ? "1.0 hapax" : "1.1 hapax");
}

/* ---- to the upstream ---- */

/* The address of the client without its port. */
static struct slice peer_text(const struct address *peer, struct arena *arena)
{
	char text[ADDRESS_TEXT_BYTES];
	struct slice host;

	address_format(peer, text);
	host = slice_of(text, (size_t)(strrchr(text, ':') - text));
	if (peer->is_ipv6)
		host = slice_of(host.p + 1, host.n - 2);
	return arena_copy(arena, host);
}

/* A request with a body says how long it is; one of a kind that usually has one says that it has none. */
static bool has_length(const struct wire_request *request)
{
	return request->head.framing != WIRE_NO_BODY || slice_is(request->method, "POST") ||
	       slice_is(request->method, "PUT") || slice_is(request->method, "PATCH");
}

bool proxy_request_fields(const struct proxy_job *job, struct arena *arena, struct wire_fields *ret_fields)
{
	static const char *const rewritten[] = {"host", "content-length", "expect", NULL};
	const struct wire_request *request = &job->request->wire;
	struct wire_fields in = request->head.fields;
	struct wire_field *out = arena_alloc(arena, (in.n + REQUEST_FIELDS_ADDED) * sizeof *out);
	bool nominating = nominates(in);
	struct slice protocols;
	uint32_t hops = 0;
	bool counts = proxy_hops_left(request, &hops) == HOPS_SOME;
	size_t n = 0;

	if (!out)
		return false;
	out[n++] = (struct wire_field){slice_str("Host"), request->host.n > 0
								  ? request->host
								  : upstream_authority(job->home->proxy->upstream)};
	for (size_t i = 0; i < in.n; i++)
		if (!is_hop_by_hop(in.at[i].name) && !slice_in_nocase(in.at[i].name, rewritten) &&
		    !(counts && slice_is_nocase(in.at[i].name, "max-forwards")) &&
		    !(nominating && wire_has_token(in, "connection", in.at[i].name)))
			out[n++] = in.at[i];
	if (job->reserved && proxy_wants_upgrade(request, &protocols)) {
		out[n++] = (struct wire_field){slice_str("Connection"), slice_str("upgrade")};
		out[n++] = (struct wire_field){slice_str("Upgrade"), protocols};
	}
	if (counts)
		out[n++] = (struct wire_field){slice_str("Max-Forwards"),
					       slice_str(text_printf(arena, "%u", hops - 1))};
	if (has_length(request))
		out[n++] = (struct wire_field){slice_str("Content-Length"),
					       slice_str(text_printf(arena, "%zu", job->request->body.n))};
	out[n++] = (struct wire_field){slice_str("X-Forwarded-For"), peer_text(&job->request->peer, arena)};
	out[n++] = (struct wire_field){slice_str("Via"), via(request->head.minor)};
	*ret_fields = (struct wire_fields){out, n};
	return !arena->failed;
}

struct slice proxy_request_target(const struct wire_request *request, struct arena *arena)
{
	struct strbuf sb;

	if (request->form != WIRE_ABSOLUTE)
		return request->target;
	strbuf_init(&sb, request->target.n + 2);
	strbuf_add_slice(&sb, request->path);
	if (request->has_query) {
		strbuf_add_char(&sb, '?');
		strbuf_add_slice(&sb, request->query);
	}
	return arena_keep(arena, &sb);
}

/* ---- from the upstream ---- */

struct wire_field *proxy_answer_fields(const struct wire_response *response, struct arena *arena, size_t more,
				       size_t *ret_n)
{
	struct wire_fields in = response->head.fields;
	struct wire_field *out = arena_alloc(arena, (in.n + 1 + more) * sizeof *out);
	bool nominating = nominates(in);
	size_t n = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < in.n; i++)
		if (!is_hop_by_hop(in.at[i].name) && !slice_is_nocase(in.at[i].name, "content-length") &&
		    !gate_is_marker(in.at[i].name) && !(nominating && wire_has_token(in, "connection", in.at[i].name)))
			out[n++] = in.at[i];
	out[n++] = (struct wire_field){slice_str("Via"), via(response->head.minor)};
	*ret_n = n;
	return out;
}

const struct gate_field *proxy_stored_fields(const struct wire_response *response, const struct gate_replay_rule *rule,
					     struct arena *arena, size_t *ret_n)
{
	struct wire_fields in = response->head.fields;
	struct gate_field *out = arena_alloc(arena, (in.n + 1) * sizeof *out);
	struct slice *connection = arena_alloc(arena, (in.n + 1) * sizeof *connection);
	size_t n = 0, connection_n = 0;

	if (!out || !connection)
		return NULL;
	for (size_t i = 0; i < in.n; i++)
		if (slice_is_nocase(in.at[i].name, "connection"))
			connection[connection_n++] = in.at[i].value;
	for (size_t i = 0; i < in.n; i++)
		if (gate_replays_field(rule, in.at[i].name, connection, connection_n))
			out[n++] = (struct gate_field){in.at[i].name, in.at[i].value};
	*ret_n = n;
	return out;
}
