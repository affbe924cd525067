/*
 * The outside world of a test: an HTTP server on loopback, in the test's own process, that plays the actions of
 * workflows. It writes down every call that was read whole (that is an effect: it must not happen twice) and answers
 * as the play of its path says. A path without a play is answered 200 {}. A key of the engine's that was used for two requests
 * (key_book.h) fails the test at the end.
 *
 *   read ──▶ written down ──▶ hook, apply ──▶ delay ──▶ held until service_release() ──▶ respond ──▶ reply, cut or drop ──▶ answered
 *
 * Each connection has a thread. Functions that wait fail the running cmocka test, so: from its thread.
 */
#ifndef HX_TESTS_SUPPORT_SERVICE_H
#define HX_TESTS_SUPPORT_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVICE_ID_BYTES 300
#define SERVICE_BODY_BYTES 2000

/* One call, as it came. */
struct service_call {
	char path[64];
	char key[SERVICE_ID_BYTES]; /* Idempotency-Key */
	char id[SERVICE_ID_BYTES];  /* the entity's, from the body */
	char authorization[200];    /* empty: no such header */
	int64_t fence, attempt;     /* 0: no such header */
	int64_t at_ms;              /* monotonic */
	char body[SERVICE_BODY_BYTES];
};

enum play_how {
	PLAY_REPLY,
	PLAY_CUT,   /* half of the reply, then the connection is closed */
	PLAY_DROP,  /* no word, the connection is closed */
	PLAY_RESET, /* the same, the hard way */
};

struct play {
	enum play_how how;
	int status;       /* 0: 200 */
	const char *body; /* NULL: {}; must outlive the play */
	bool receipt;     /* the body is {"call":N,"got":BODY} instead, with the number of the call, from 1 */
	/* The body is {"receipt":N} instead, with what this returns; in the connection's thread. */
	uint64_t (*apply)(void *context, const struct service_call *call);
	/* Writes the body and returns the status instead; 0: no word, the connection is closed. In the connection's thread. */
	int (*respond)(void *context, const struct service_call *call, char *body, size_t bytes);
	int64_t delay_ms; /* how long the action works */
	bool hold;        /* it answers after service_release() */
	bool unnoted;     /* the call is not written down: there will be too many */
	/* In the connection's thread; must not fail the test. `answered`: the reply has left this process. */
	void (*hook)(void *context, const struct service_call *call);
	void (*answered)(void *context, const struct service_call *call);
	void *context;
};

struct service;

struct service *service_new(void);
/* Held calls are dropped. Takes NULL. */
void service_free(struct service *service);
int service_port(const struct service *service);

/* From the next call on. */
void service_play(struct service *service, const char *path, const struct play *play);
/* Lets all calls go that are held now; or the one that has been held for longest. */
void service_release(struct service *service);
void service_release_one(struct service *service);
/* Closed: connections are refused, and those that there are end. Open: on the same port again. */
void service_close_door(struct service *service);
void service_open_door(struct service *service);

/* How many calls of this path (NULL: of any) for this entity (NULL: for any). */
size_t service_count(struct service *service, const char *path, const char *id);
/* The i-th call of this path, from 0; fails the test when there is none. */
struct service_call service_call(struct service *service, const char *path, size_t i);
/* Waits until there are n calls of this path; fails the test after the time. */
void service_await(struct service *service, const char *path, size_t n, int64_t deadline_ms);
void service_forget(struct service *service);

#endif
