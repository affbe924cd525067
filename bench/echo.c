/*
 * echo ADDRESS:PORT : our own HTTP server with nothing behind it. It answers every request at once with as many bytes as
 * an entity's answer has: what our API can reach at most, with the same parser, limits and loops.
 */
#include <signal.h>
#include <stdio.h>

#include "serve/server.h"

static void answer(void *data, struct http_exchange *exchange)
{
	static const struct wire_field type = {{"Content-Type", 12}, {"application/json", 16}};
	static const char body[] = "{\"workflow\":\"bench\",\"id\":\"order-1000000\",\"status\":\"open\",\"version\":1,"
				   "\"data\":{},\"claim\":null,\"updatedAt\":\"2026-01-01T00:00:00.000Z\"}";
	struct http_answer plain = {.status = 201, .fields = {&type, 1}, .body = slice_str(body)};

	(void)data;
	http_respond(exchange, &plain);
}

int main(int argc, char **argv)
{
	struct server_options options = server_options_default();
	char address[ADDRESS_TEXT_BYTES];
	struct http_server *server;
	struct hx_error err;
	sigset_t signals;
	int signal;

	if (argc != 2) {
		fprintf(stderr, "usage: echo ADDRESS:PORT\n");
		return 2;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	options.listen = argv[1];
	options.handle = answer;
	if (http_server_new(&options, &server, &err)) {
		fprintf(stderr, "echo: %s\n", err.detail);
		return 1;
	}
	address_format(http_server_address(server), address);
	printf("ready http://%s\n", address);
	fflush(stdout);
	sigwait(&signals, &signal);
	http_server_free(server);
	return 0;
}
