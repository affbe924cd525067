/*
 * A caller of the API for tests: one keep-alive connection, one request at a time, blocking.
 *
 * client_call() may be used from any thread, a client from one at a time, and never fails the test; the readers of a
 * reply do, so they are for the test's own thread.
 */
#ifndef HX_TESTS_SUPPORT_CLIENT_H
#define HX_TESTS_SUPPORT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_HEAD_BYTES 2048

struct reply {
	int status;    /* 0: there was no answer */
	char code[40]; /* of a problem; else empty */
	char head[CLIENT_HEAD_BYTES];
	char *body; /* NUL-terminated; NULL when there was no answer */
	size_t body_n;
	int64_t took_ms;
};

struct client;

/* Connects with its first call. The requester is sent with each one; NULL: none. */
struct client *client_new(int port, const char *requester);
/* Takes NULL. */
void client_free(struct client *client);
/* False: there was no answer, or not all of it. The reply is reply_release()d in any case. */
bool client_call(struct client *client, const char *method, const char *path, const char *body, size_t n,
		 struct reply *ret_reply);
/* The same with more fields in its head: lines, each with \r\n after it. */
bool client_call_with(struct client *client, const char *method, const char *path, const char *fields, const char *body,
		      size_t n, struct reply *ret_reply);
/* Bytes as they are, on a connection of their own, and the answer to them. */
bool client_raw(struct client *client, const char *bytes, size_t n, struct reply *ret_reply);
void reply_release(struct reply *reply);

/* A member of the body by its path, such as "entity.status" or "items.0.claim.held". Fails the test without it. */
int64_t reply_int(const struct reply *reply, const char *path);
/* A string as its text, anything else as it is written; at most 511 bytes. The buffer is of the thread, used in turn. */
const char *reply_text(const struct reply *reply, const char *path);
/* How many elements the array has. */
size_t reply_count(const struct reply *reply, const char *path);

#endif
