/*
 * A proxy between a client and the private PostgreSQL that breaks connections at chosen moments.
 *
 * It runs in a thread of its own, listens on a free port of 127.0.0.1 and passes bytes on. It understands just
 * enough of the protocol to see a COMMIT that the client sends as a simple query (as the driver does). What is
 * armed happens at the next COMMIT, on whatever connection, once:
 *
 *   CUT_BEFORE   both sides are closed, the server never sees the COMMIT
 *   CUT_AFTER    the server gets it; when it has answered, both sides are closed and the answer is dropped
 *   HOLD         the client is cut off; the COMMIT reaches the server only at pg_proxy_let_go()
 *   REFUSE       it is answered with an error, as a server does whose limit of time has passed, and never seen by the server; a
 *                ROLLBACK likewise
 */
#ifndef HX_TESTS_SUPPORT_PG_PROXY_H
#define HX_TESTS_SUPPORT_PG_PROXY_H

enum pg_proxy_mode { PG_PROXY_PASS, PG_PROXY_CUT_BEFORE, PG_PROXY_CUT_AFTER, PG_PROXY_HOLD, PG_PROXY_REFUSE };

struct pg_proxy;

/* NULL when it cannot be started. */
struct pg_proxy *pg_proxy_new(int server_port);
/* Closes all connections and ends the thread. Takes NULL. */
void pg_proxy_free(struct pg_proxy *proxy);
int pg_proxy_port(const struct pg_proxy *proxy);

void pg_proxy_arm(struct pg_proxy *proxy, enum pg_proxy_mode mode);
/* Closes every connection right now. */
void pg_proxy_drop(struct pg_proxy *proxy);
/* From now on nothing is passed on, and nothing closed: a peer that has died without a word. Drop ends it. */
void pg_proxy_stall(struct pg_proxy *proxy);
/* Hands a held COMMIT to the server and returns when it has answered. */
void pg_proxy_let_go(struct pg_proxy *proxy);
/* How many COMMITs have been cut or held. */
int pg_proxy_cuts(struct pg_proxy *proxy);
/* How many times a client has asked for all that it had sent to be answered: a COMMIT is one. */
unsigned pg_proxy_trips(struct pg_proxy *proxy);

#endif
