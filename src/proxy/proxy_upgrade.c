/*
 * Upgrade (RFC 9110, 7.8): a request that asks for another protocol, a WebSocket as a rule. On a route that is not guarded it goes on
 * with its Upgrade; if the service answers 101 the two sockets become a tunnel, any other answer is an ordinary one. On a guarded
 * route it is refused: what goes through a tunnel has no key, and cannot be replayed.
 *
 * h2c and other versions of HTTP or TLS are never passed on: through such a tunnel requests would come that nobody has looked at. As
 * RFC 9110 lets us, that wish is overheard, since some clients send it with every request.
 */
#include <unistd.h>

#include "base/tls.h"
#include "proxy/proxy_job.h"
#include "wire/charset.h"
#include "wire/writer.h"

/* h2c is among what begins with h2. */
static bool is_of_our_own(struct slice protocol)
{
	return slice_starts_nocase(protocol, "h2") || slice_starts_nocase(protocol, "http") ||
	       slice_starts_nocase(protocol, "tls");
}

bool proxy_wants_upgrade(const struct wire_request *request, struct slice *ret_protocols)
{
	const struct wire_head *head = &request->head;
	size_t n = 0;
	const struct wire_field *field = wire_find(head->fields, "Upgrade", &n);
	struct slice rest, item;

	if (n != 1 || head->minor == 0 || head->framing == WIRE_CHUNKED || head->length > 0 ||
	    !wire_has_token(head->fields, "Connection", slice_str("upgrade")))
		return false;
	rest = field->value;
	while (slice_list_next(&rest, &item))
		if (is_of_our_own(item))
			return false;
	*ret_protocols = field->value;
	return field->value.n > 0;
}

/* One that was asked for, and no other. */
static bool is_asked_for(const struct wire_request *request, const struct wire_response *response,
			 struct slice *ret_protocol)
{
	size_t n = 0;
	const struct wire_field *field = wire_find(response->head.fields, "Upgrade", &n);
	struct slice rest, item;

	if (n != 1 || !proxy_wants_upgrade(request, &rest))
		return false;
	*ret_protocol = field->value;
	while (slice_list_next(&rest, &item))
		if (slice_eq_nocase(item, field->value))
			return true;
	return false;
}

static bool write_head(const struct proxy_job *job, struct slice protocol, struct strbuf *out)
{
	size_t n = 0;
	const struct wire_field *fields = proxy_answer_fields(&job->call.response, http_exchange_arena(job->exchange),
							      0, &n);

	head_write_status(101, out);
	head_write_text("Connection", "upgrade", out);
	if (!fields || !head_write_field(slice_str("Upgrade"), protocol, out))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!head_write_field(fields[i].name, fields[i].value, out))
			return false;
	head_write_end(out);
	return !out->failed;
}

bool proxy_reserve_tunnel(struct proxy_job *job)
{
	struct proxy *proxy = job->home->proxy;

	if (atomic_fetch_add(&proxy->tunnels, 1) >= job->rules->config->max_tunnels) {
		atomic_fetch_sub(&proxy->tunnels, 1);
		return false;
	}
	job->reserved = true;
	return true;
}

static void drop_socket(int fd, struct tls_link *tls)
{
	tls_link_free(tls);
	close(fd);
}

bool proxy_open_tunnel(struct proxy_job *job, int fd, struct tls_link *tls, struct slice rest)
{
	int64_t idle_ms = job->rules->config->tunnel_timeout_ms;
	struct strbuf to_client, to_service;
	struct slice protocol;
	int client;
	LOCAL_STRBUF(head, TUNNEL_BYTES);

	if (!is_asked_for(&job->request->wire, &job->call.response, &protocol) || !write_head(job, protocol, &head)) {
		drop_socket(fd, tls);
		return false;
	}
	strbuf_init(&to_client, 4 * TUNNEL_BYTES);
	strbuf_init(&to_service, 4 * TUNNEL_BYTES);
	client = http_take_socket(job->exchange, &to_client, &to_service);
	job->exchange = NULL;
	job->answer = ANSWER_GIVEN;
	strbuf_add_slice(&to_client, strbuf_slice(&head));
	strbuf_add_slice(&to_client, rest);
	if (client < 0 || to_client.failed || to_service.failed) {
		drop_socket(fd, tls);
		if (client >= 0)
			close(client);
		strbuf_release(&to_client);
		strbuf_release(&to_service);
		return true;
	}
	job->reserved = false; /* the tunnel's from now on */
	proxy_count(&job->home->proxy->stats.tunnels);
	tunnel_open(&job->home->tunnels, client, &to_client, fd, tls, &to_service, idle_ms);
	return true;
}
