/*
 * The listening socket. It belongs to the first loop, which accepts and deals the connections out to all loops in turn.
 *
 * With connections_max open, one that has been idle for a moment makes room, the longest idle of its loop. If none has,
 * or the system has no descriptors, accepting pauses, and clients wait in the backlog. A pause ends when a connection
 * closes, and is looked at again every PAUSE_MS.
 */
#pragma once

#include "wire/address.h"
#include "wire/loop.h"

struct http_server;

struct listener {
	struct watch watch;
	struct letter letter; /* there may be room again */
	struct deadline_queue pauses;
	struct deadline pause;
	struct http_server *server;
	struct address address; /* with the real port */
	int fd;                 /* -1: not open */
	unsigned next;          /* whose turn it is */
	_Atomic bool paused;
};

/* Binds and listens; nothing is accepted before listener_start(). */
enum hx_code listener_open(struct listener *listener, struct http_server *server, struct hx_error *err) HX_MUST_CHECK;
/* Watches the socket in the first loop, whose thread does not run yet. */
enum hx_code listener_start(struct listener *listener, struct hx_error *err) HX_MUST_CHECK;
/* In the first loop's thread: takes in who is in the backlog already, then closes. Closing twice is safe. */
void listener_drain(struct listener *listener);
void listener_close(struct listener *listener);
/* A connection has closed. In any loop's thread. */
void listener_freed(struct listener *listener);
