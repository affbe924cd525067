/*
 * One client's connection, for the files that make up the server: its state, and what all of its states share. The
 * states are drawn in connection.c; reading requests is intake.c's. All in the loop's thread, but for
 * connection_open().
 */
#pragma once

#include "base/strbuf.h"
#include "wire/address.h"
#include "wire/body.h"
#include "wire/loop.h"
#include "wire/wire.h"

struct http_exchange;
struct server_loop;

enum connection_state {
	CONNECTION_NEW,
	CONNECTION_IDLE,
	CONNECTION_HEAD,
	CONNECTION_BODY,
	CONNECTION_HANDLING,
	CONNECTION_ANSWERING,
	CONNECTION_LINGERING,
	CONNECTION_CLOSED
};

struct connection {
	struct watch watch;
	struct letter letter; /* start, go on, be freed: whatever the state says */
	struct deadline deadline;
	struct server_loop *home;
	struct http_exchange *exchange;
	struct strbuf interim; /* 1xx answers that are not sent yet; they go before all else */
	size_t interim_sent;
	struct strbuf pending; /* bytes that belong to no complete request yet, or to the next one */
	struct wire_scan scan;
	struct wire_body body;
	struct mono_time request_at; /* when its first byte came */
	size_t progress_bytes;       /* sent since the deadline was set */
	struct address peer;
	int fd;
	uint8_t state;
	bool can_read, can_write, peer_closed;
	bool unfed; /* `pending` has bytes that the current state has not seen */
	bool feeding; /* somebody up the stack looks at bytes of this connection, and goes on when the state has changed */
};

/*
 * Takes the descriptor over, in any thread: the connection starts when its loop gets to it. False, with the descriptor
 * closed, if there is no memory or the loop has ended.
 */
bool connection_open(struct server_loop *home, int fd, const struct address *peer);
/* The only function that changes the state. */
void connection_enter(struct connection *c, enum connection_state state);
/* Closes and tells the handler. The struct lives until the end of the round. */
void connection_close(struct connection *c);
/* The server answers by itself, and the connection is used up. It may be closed afterwards. */
void connection_refuse(struct connection *c, enum hx_code code, const char *reason);
/* How many bytes came into the loop's buffer; 0 if none did, and perhaps the connection is closed now. */
size_t connection_receive(struct connection *c, int flags);

/* The head was found good (HANDLING): its body is read now, until read_ms after the request's first byte. */
void connection_read_body(struct connection *c, int64_t read_ms);
/*
 * There is no room for a body. True: the one of this loop that has been on its way for longest was given up, so that there may be some
 * now; `large`: only those that count among the large ones. False: there is none that had its time.
 */
bool connection_crowd_out(struct connection *c, bool large);
/* Reads what there is (IDLE, HEAD, BODY) and goes on to the state that follows. False if it has to wait. */
bool intake_read(struct connection *c);

/* Sends this before the answer, whole, or not at all. */
void connection_send_interim(struct connection *c, struct slice head);
/* The connection ends, but for its socket, which is returned: for http_take_socket(). */
int connection_give_up(struct connection *c, struct strbuf *ret_unsent, struct strbuf *ret_unread);
/* The handler has said something: its answer, or a piece of one. */
void connection_answered(struct connection *c);
/* Closes the one that has been idle for longest; false if none has for a moment. */
bool connection_evict(struct server_loop *home);
/* The server is stopping: closes what is idle, and lets the others know that their answer is the last. */
void connections_drain(struct server_loop *home);
void connections_close_all(struct server_loop *home);
/* The queues of a loop, for server_loop_init. */
void connections_init(struct server_loop *home);
