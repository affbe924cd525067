/* A server of this program for one test that is replayed (replay.h): its folder, its process. */
#pragma once

#include <sys/types.h>

#include "trial/example.h"

#define REPLAY_SKIP_MS "301000" /* longer than any lease there */
#define REPLAY_DB_BYTES 1000
#define REPLAY_SECRET                                                                                                  \
	"hapax-test" /* of its hooks, which are called as actions are; a delivery says its `id`, and whom by `key` */

struct replay_plan {
	const struct definition_set *set;
	size_t services_n;
	const struct example_mock *services; /* as the definitions have them */
	const struct example_result *result; /* of the test */
	const char *mock_url;
	const char *store; /* a database of PostgreSQL; NULL: a store of SQLite's own */
};

struct replay_server {
	char folder[40]; /* "": none */
	char url[80];
	char listen[40]; /* after its first start the same port */
	char db[REPLAY_DB_BYTES];
	const char *store; /* where `schema` is dropped at the end; NULL: nowhere */
	char schema[40];
	pid_t pid;
	bool clocked;
};

/*
 * Actions that are not http are left as they are. clocked: its time can be moved, and it has a store in memory; otherwise it can be
 * killed and started again. In a database of PostgreSQL's, whose time cannot be moved, it makes a schema of its own.
 */
enum hx_code replay_server_start(struct replay_server *server, const struct replay_plan *plan, bool clocked,
				 struct hx_error *err) HX_MUST_CHECK;
/* kill -9, and a new one on the same store, at the same place. */
enum hx_code replay_server_kill(struct replay_server *server, struct hx_error *err) HX_MUST_CHECK;
/* It stands still for longer than its leases are, where its time cannot be moved. */
void replay_server_pause(struct replay_server *server);
/* What this statement of the example's says of the tables, where the store is a file; the server is gone then. NULL: nothing is asked. */
enum hx_code replay_server_look(struct replay_server *server, const char *sql, struct strbuf *ret,
				struct hx_error *err) HX_MUST_CHECK;
/* The process is gone after it, and so are the folder and the schema. For one that did not start, too. */
void replay_server_stop(struct replay_server *server);

static inline const char *replay_server_url(const struct replay_server *server)
{
	return server->url;
}

static inline bool replay_server_is_clocked(const struct replay_server *server)
{
	return server->clocked;
}
