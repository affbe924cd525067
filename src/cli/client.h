/*
 * The client: one question to a server, one answer. Every verb that speaks HTTP goes through it.
 *
 *   client_init(args) ─▶ question_build() ─▶ client_ask() ─▶ the answer, or an error in the server's words
 *
 * Blocking, one connection to a question, plain HTTP/1.1 read by our own strict parser (wire/wire.h). A question has
 * one deadline, from the connect to the last byte; only resolving a name is out of its reach.
 *
 * A problem of the server's becomes an error with the server's own code, so that the exit code says what a local
 * failure would. What cannot be known is not guessed: a POST that was sent and not answered is HX_OUTCOME_UNKNOWN,
 * one that could not be sent is HX_SERVER_UNAVAILABLE, and then nothing was done.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "cli/command.h"

#define CLIENT_HOST_BYTES_MAX 256

struct client {
	const char *server;
	const char *flag;    /* the option that said so, without its dashes */
	const char *program; /* what should be running there */
	const char *api_key; /* NULL: none. Never told to anybody but the server */
	const char *key_env; /* where it could have been said; NULL: HAPAX_KEY, or --key-file */
	int64_t timeout_ms;
	bool json;
	const char *key;                  /* the Idempotency-Key of the question; NULL: none */
	char host[CLIENT_HOST_BYTES_MAX]; /* without the brackets of an IPv6 address */
	char port[6];
	bool secure;              /* https */
	struct slice authority;   /* as written */
	struct arena arena;       /* for whoever reads the answer */
	struct strbuf headers;    /* of all questions: those that options go into */
	struct strbuf path, body; /* of the question; a body is sent with every method but GET */
	struct strbuf answer;
};

/* For the server that the options of the command name, or for its gate. To be released, whatever this says. */
enum hx_code client_init(struct client *client, const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;
/* For a server that this process has started itself. The address must outlive it; otherwise the same. */
enum hx_code client_init_own(struct client *client, const char *server, int64_t timeout_ms,
			     struct hx_error *err) HX_MUST_CHECK;
void client_release(struct client *client);

/* Adds to the path of the question: text as it is, text percent-encoded, a segment of that, a parameter of the query. */
void client_path(struct client *client, const char *text);
void client_encoded(struct client *client, const char *text);
void client_segment(struct client *client, const char *text);
void client_query(struct client *client, const char *name, const char *value);

/* Forgets path, body, key and answer, for another question on `path`. What was put into the arena stays. */
void client_next(struct client *client, const char *path);

/* The member of an answer as one would read it, see text_of_member(). */
struct slice client_member(struct client *client, struct json object, const char *name);

/* One question; the answer lives until the release, or the next one. */
enum hx_code client_ask(struct client *client, const char *method, struct json *ret_answer,
			struct hx_error *err) HX_MUST_CHECK;
