/*
 * One connection to the upstream, for the three files that it is made of: upstream_connect.c (its name, its addresses, its greeting),
 * upstream_connection.c (its states, its socket, the request) and upstream_answer.c (what is made of the bytes that come back).
 * Everybody else uses upstream.h.
 */
#pragma once

#include "wire/upstream_pool.h"

/* Of the head of an answer. */
extern const struct wire_limits upstream_answer_limits;

enum upstream_state { UPSTREAM_RESOLVING, UPSTREAM_CONNECTING, UPSTREAM_BUSY, UPSTREAM_IDLE, UPSTREAM_CLOSED };

struct upstream_connection {
	struct watch watch;
	struct letter letter;   /* go on; be freed */
	struct deadline closes; /* IDLE; CONNECTING: the next address is tried then */
	struct upstream_pool *pool;
	struct upstream_connection *previous, *next;           /* of the pool */
	struct upstream_connection *idle_previous, *idle_next; /* IDLE: of those of the pool, the last one first */
	struct upstream_call *call;                            /* RESOLVING, CONNECTING, BUSY */
	int fd;
	struct tls_link *tls; /* https, since the socket is connected */
	uint8_t state;
	bool can_read, can_write, peer_closed;
	bool reused;     /* it was idle before */
	bool touched;    /* a byte of the request has left on it, or may have */
	bool write_dead; /* sending has failed */
	bool paused;     /* until upstream_call_resume() */
	bool in_body, body_done;
	bool begun;                 /* a byte of the answer has come */
	bool leftover;              /* and bytes after its end */
	struct addresses addresses; /* a copy: what the name means may change meanwhile */
	size_t address;             /* which one is being tried */
	unsigned interim_n;
	struct strbuf out; /* the head of the request; the body is the call's */
	size_t sent;       /* of both */
	struct wire_scan scan;
	struct wire_body body;
	struct strbuf pending, spill;
	size_t spill_at;
};

/* ---- upstream_connect.c ---- */

/* Begins to connect, once it is known where to. The call may be over then. */
void upstream_connect(struct upstream_connection *c);
/* CONNECTING, and its socket is ready for something. True: it is BUSY now. If not, the call may be over. */
bool upstream_connected(struct upstream_connection *c);
/* An address has had its time, and there is another one to try. */
void upstream_give_up_address(struct deadline *deadline);
void upstream_note_obstacle(struct upstream_call *call, enum upstream_obstacle obstacle, int error);
/* None of them could be connected to: the next call asks what the name means. */
void upstream_forget_addresses(struct upstream_pool *pool);

/* ---- upstream_connection.c ---- */

/* Not on this connection: the call ends, NOT_SENT unless it was sent on another one. */
void upstream_not_sent(struct upstream_connection *c, const char *reason);
void upstream_close_socket(struct upstream_connection *c);
/* Closes the connection that has been idle longest. False: none is. */
bool upstream_make_room(struct upstream_hub *hub);
/* The struct lives until the end of the round. The call, if there is one, is not told. */
void upstream_close(struct upstream_connection *c);
/* The call ends UNKNOWN, and its connection. */
void upstream_unknown(struct upstream_connection *c, enum hx_code code, const char *reason);
/* The upstream has closed, or reset, before the answer was complete. */
void upstream_broken(struct upstream_connection *c, const char *reason);
/* The answer is complete and all of it was taken. */
void upstream_finish(struct upstream_connection *c, bool leftover);

/* ---- upstream_answer.c ---- */

/* Feeds what is pending with the new bytes after it, and keeps the rest. The call may be over then. */
void upstream_consume(struct upstream_connection *c, struct slice fresh);
/* Hands data out, and says how much was taken; with less than all it is paused. The call may be over then. */
size_t upstream_hand_out(struct upstream_connection *c, struct slice data);
/* No more bytes will come. */
void upstream_no_more(struct upstream_connection *c);
