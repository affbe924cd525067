/*
 * run_server URL WORKFLOWS NODE : what `hapax serve` serves, with the native actions of bench_engine.h, on a free port of
 * 127.0.0.1. Prints "ready http://ADDRESS"; SIGTERM ends it.
 */
#include <sqlite3.h>

#include "api/api.h"
#include "bench_engine.h"

static struct api api;

static struct http_server *open_door(struct router *router)
{
	struct server_options options = server_options_default();
	struct http_server *server;
	struct hx_error err;

	options.listen = "127.0.0.1:0";
	options.handle = router_handle;
	options.data = router;
	if (http_server_new(&options, &server, &err))
		bench_die("listen", &err);
	return server;
}

int main(int argc, char **argv)
{
	char address[ADDRESS_TEXT_BYTES];
	struct http_server *server;
	struct router *router;
	sigset_t signals;
	int number;

	if (argc != 4) {
		fprintf(stderr, "usage: run_server URL WORKFLOWS NODE\n");
		return 2;
	}
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* as `hapax` itself does */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	api.engine = bench_engine_new(argv[1], argv[2], argv[3]);
	api.loopback = true;
	router = api_router_new(&api);
	server = open_door(router);
	atomic_store(&api.ready, true);
	address_format(http_server_address(server), address);
	printf("ready http://%s\n", address);
	fflush(stdout);
	sigwait(&signals, &number);
	http_server_stop(server, BENCH_DRAIN_MS);
	engine_stop(api.engine, BENCH_DRAIN_MS);
	http_server_free(server);
	router_free(router);
	engine_free(api.engine);
	return 0;
}
