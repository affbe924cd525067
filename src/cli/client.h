/*
 * The client: one question to a server, one answer. Every verb that speaks HTTP goes through it.
 *
 *   client_init(args) ─▶ client_path(…)… ─▶ client_run() ─▶ the answer, printed, or an error in the server's words
 *
 * Blocking, one connection to a question, plain HTTP/1.1 read by our own strict parser (http/wire.h). A question has
 * one deadline, from the connect to the last byte; only resolving a name is out of its reach.
 *
 * A problem of the server's becomes an error with the server's own code, so that the exit code says what a local
 * failure would. What cannot be known is not guessed: a POST that was sent and not answered is HX_OUTCOME_UNKNOWN,
 * one that could not be sent is HX_SERVER_UNAVAILABLE, and then nothing was done.
 */
#ifndef HX_CLI_CLIENT_H
#define HX_CLI_CLIENT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "cli/command.h"

#define CLIENT_HOST_BYTES_MAX 256

extern const struct command_option option_server;
extern const struct command_option option_workspace;
extern const struct command_option option_requester;
extern const struct command_option option_key_file;
extern const struct command_option option_timeout;
extern const struct command_option option_limit;
extern const struct command_option option_cursor;

/* clang-format off */
/* What every verb that uses it declares. */
#define CLIENT_OPTIONS &option_server, &option_key_file, &option_workspace, &option_requester, &option_timeout, &option_json
#define CLIENT_PAGE_OPTIONS &option_limit, &option_cursor
#define CLIENT_EXITS                                                                                                   \
	{HX_UNAUTHENTICATED, "the server wants an API key, or this one may not do that"},                              \
	{HX_NOT_FOUND, "there is no such thing here"},                                                                 \
	{HX_TOO_LARGE, "it is too large"},                                                                             \
	{HX_OUTCOME_UNKNOWN, "it is not known whether this took effect"},                                              \
	{HX_SERVER_UNAVAILABLE, "no server can be reached, or it cannot reach its store; nothing was done"},            \
	{HX_BUSY, "the server has too much to do, or is stopping; nothing was done"},                                  \
	{HX_BAD_GATEWAY, "what answers is no hapax server"}
/* clang-format on */

struct client {
	const char *server;
	const char *flag;                  /* the option that said so, without its dashes */
	const char *program;               /* what should be running there */
	const char *workspace, *requester; /* NULL: not sent */
	const char *api_key;               /* NULL: none. Never told to anybody but the server */
	const char *key_env;               /* where it could have been said; NULL: HAPAX_KEY, or --key-file */
	int64_t timeout_ms;
	bool json;
	const char *key;                  /* the Idempotency-Key of the question; NULL: none */
	char host[CLIENT_HOST_BYTES_MAX]; /* without the brackets of an IPv6 address */
	char port[6];
	bool secure;              /* https */
	struct slice authority;   /* as written */
	struct arena arena;       /* for whoever reads the answer */
	struct strbuf path, body; /* of the question; a body is sent with every method but GET */
	struct strbuf answer;
};

/* Reads the options above. It is released by client_run(), or by hand, whatever this says. */
enum hx_code client_init(struct client *client, const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;
/* The same for a server that has no workspaces: `address` (ADDR:PORT) is the value of `flag`, `program` what runs there.
 * Of the options above only --timeout and --json are read. */
enum hx_code client_init_at(struct client *client, const struct command_args *args, const char *flag,
			    const char *address, const char *program, struct hx_error *err) HX_MUST_CHECK;
void client_release(struct client *client);

/* Adds to the path of the question: text as it is, a percent-encoded segment, a parameter of the query. */
void client_path(struct client *client, const char *text);
void client_segment(struct client *client, const char *text);
void client_query(struct client *client, const char *name, const char *value);
/* For lists: which page is wanted. */
void client_page(struct client *client, const struct command_args *args);

/* Forgets path, body, key and answer, for another question on `path`. What was put into the arena stays. */
void client_next(struct client *client, const char *path);

/* One question; the answer lives until the release, or the next one. */
enum hx_code client_ask(struct client *client, const char *method, struct json *ret_answer,
			struct hx_error *err) HX_MUST_CHECK;
/*
 * The rest of a verb: unless `so_far` is an error already, asks, then prints the answer as it came (--json) or hands
 * it to `print`, which puts it into words. Releases the client.
 */
enum hx_code client_run(struct client *client, enum hx_code so_far, const char *method,
			enum hx_code (*print)(struct client *, struct json answer, struct hx_error *),
			struct hx_error *err) HX_MUST_CHECK;

#endif
