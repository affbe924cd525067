/*
 * hapax dashboard: the dashboard of a server elsewhere, on this machine.
 *
 *   browser ──▶ http://127.0.0.1:7414/TOKEN/ ─┬ /, /ui/…     the files of this program
 *                                             └ /api/v1/…    relayed, in the name of the key (proxy/relay.h)
 *
 * The key stays in this process. But whoever reaches the port would act with it, so:
 *
 *   loopback alone   it listens nowhere else
 *   TOKEN            drawn anew at each start, and known to who sees the line that is printed: other users of this machine do not
 *   Host             must be this machine's: a domain that has just become 127.0.0.1 is none (DNS rebinding)
 *   Origin           what is asked for, other than by typing the address, is asked for by this very page (serve/local.h)
 *   cookies          none is read, passed on or set
 */
#include <stdio.h>
#include <sys/random.h>

#include "api/api_dashboard.h"
#include "base/digits.h"
#include "cli/client.h"
#include "cli/local.h"
#include "cli/service.h"
#include "proxy/relay.h"
#include "serve/local.h"
#include "serve/problem.h"

#define TOKEN_BYTES 16
#define DRAIN_MS 500
#define BODY_BYTES_MAX (16u << 20)

struct dashboard {
	char token[2 * TOKEN_BYTES + 1];
	struct relay *relay;
	struct http_server *server;
	struct client client;
	struct log log;
	struct steady_clock clock;
};

/* What stands after /TOKEN. False: it is another, however much of it is right. */
static bool is_under_token(const struct dashboard *d, struct slice path, struct slice *ret_rest)
{
	size_t n = sizeof d->token - 1;
	unsigned char differs = 0;

	if (path.n < n + 2 || path.p[0] != '/' || path.p[n + 1] != '/')
		return false;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(path.p[i + 1] ^ d->token[i]);
	*ret_rest = slice_from(path, n + 1);
	return differs == 0;
}

static void pass_on(struct dashboard *d, struct http_exchange *exchange, struct slice path)
{
	const struct wire_request *wire = &http_exchange_request(exchange)->wire;
	struct arena *arena = http_exchange_arena(exchange);
	size_t n = path.n + (wire->has_query ? 1 + wire->query.n : 0);
	char *target = arena_alloc(arena, n + 1);

	if (!target) {
		http_respond_code(exchange, HX_NO_MEMORY, NULL);
		return;
	}
	snprintf(target, n + 1, "%.*s%s%.*s", SLICE_ARGS(path), wire->has_query ? "?" : "", SLICE_ARGS(wire->query));
	relay_pass(d->relay, exchange, slice_of(target, n));
}

static void dashboard_handle(void *data, struct http_exchange *exchange)
{
	const struct wire_request *wire = &http_exchange_request(exchange)->wire;
	const char *foreign = local_refusal(wire);
	struct dashboard *d = data;
	struct slice rest;

	if (!foreign)
		foreign = own_page_refusal(wire);
	if (foreign)
		http_respond_code(exchange, HX_FORBIDDEN, foreign);
	else if (!is_under_token(d, wire->path, &rest))
		http_respond_code(exchange, HX_NOT_FOUND, "open the address that hapax dashboard has printed");
	else if (slice_starts(rest, "/api/v1/"))
		pass_on(d, exchange, rest);
	else if (!slice_is(wire->method, "GET") && !slice_is(wire->method, "HEAD"))
		http_respond_code(exchange, HX_METHOD_NOT_ALLOWED, NULL);
	else if (slice_starts(rest, "/ui/"))
		api_dashboard_file(exchange, slice_from(rest, sizeof "/ui/" - 1));
	else if (slice_is(rest, "/"))
		api_dashboard_file(exchange, slice_str("index.html"));
	else
		http_respond_code(exchange, HX_NOT_FOUND, NULL);
}

static enum hx_code dashboard_check_listen(const char *listen, struct hx_error *err)
{
	struct address address;

	if (address_parse(listen, err, &address))
		return error_set(err, HX_CONFIG_ERROR, "--listen: %s", err->detail);
	if (!address_is_loopback(&address))
		return error_set(err, HX_CONFIG_ERROR,
				 "--listen %s: it carries your key, and is for this machine alone: 127.0.0.1 or [::1]",
				 listen);
	return HX_OK;
}

/* Is it there, and is the key good? Said now, and not by an empty page. */
static enum hx_code ask_server(struct dashboard *d, struct hx_error *err)
{
	struct json unused;

	client_next(&d->client, "/api/v1/session");
	return client_ask(&d->client, "GET", &unused, err);
}

static enum hx_code dashboard_open(struct dashboard *d, const char *listen, struct hx_error *err)
{
	struct server_options options = server_options_default();
	uint8_t token[TOKEN_BYTES];
	enum hx_code code;

	if (getrandom(token, sizeof token, 0) != sizeof token)
		return error_set(err, HX_INTERNAL, "there is no randomness");
	hex_write(token, sizeof token, d->token);
	code = relay_new(d->client.server, d->client.api_key, strbuf_slice(&d->client.headers), &d->relay, err);
	if (code)
		return code;
	options.listen = listen;
	options.handle = dashboard_handle;
	options.data = d;
	options.loops = 1;
	options.body_bytes_max = BODY_BYTES_MAX;
	options.clock = clock_system();
	options.log = &d->log;
	return http_server_new(&options, &d->server, err);
}

static void nothing_to_read(void *context)
{
	(void)context;
}

static void dashboard_serve(struct dashboard *d, const sigset_t *signals)
{
	char address[ADDRESS_TEXT_BYTES], place[ADDRESS_TEXT_BYTES + sizeof d->token + 2];

	address_format(http_server_address(d->server), address);
	snprintf(place, sizeof place, "%s/%s/", address, d->token);
	service_ready(place);
	service_wait_for_end(signals, nothing_to_read, NULL);
	service_tell("STOPPING=1");
}

enum hx_code dashboard_run(const struct command_args *args, struct hx_error *err)
{
	const char *listen = command_value(args, "listen");
	struct dashboard d = {.server = NULL};
	sigset_t signals;
	enum hx_code code;

	service_begin(&signals, &d.log, &d.clock);
	code = client_init(&d.client, args, err);
	if (!code)
		code = dashboard_check_listen(listen, err);
	if (!code)
		code = ask_server(&d, err);
	if (!code)
		code = dashboard_open(&d, listen, err);
	if (!code)
		dashboard_serve(&d, &signals);
	http_server_stop(d.server, DRAIN_MS);
	relay_free(d.relay);
	http_server_free(d.server);
	client_release(&d.client);
	steady_clock_release(&d.clock);
	return code;
}
