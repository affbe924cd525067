/* See listen.h. The connection is the driver's own, with its checks and its bounded waits. */
#include "db/listen.h"

#include <stdio.h>
#include <stdlib.h>

#include "db/postgres.h"

#define ANSWER_MS 5000
#define CHANNEL_BYTES_MAX 40

struct listen {
	struct db *db;
	char channel[CHANNEL_BYTES_MAX];
	PGnotify *taken;
	bool listening; /* on this connection */
};

static struct pg *pg_of(const struct listen *listen)
{
	return (struct pg *)listen->db;
}

enum hx_code listen_open(const struct db_options *options, const char *channel, struct listen **ret_listen,
			 struct hx_error *err)
{
	struct listen *listen = calloc(1, sizeof *listen);
	enum hx_code code;

	ASSERT(strlen(channel) < CHANNEL_BYTES_MAX);
	if (!listen)
		return error_set(err, HX_NO_MEMORY, "a session that listens");
	snprintf(listen->channel, sizeof listen->channel, "%s", channel);
	code = db_open(options, &listen->db, err);
	if (!code)
		code = listen_connect(listen, err);
	return HAND_OVER(code, listen, listen_close, ret_listen);
}

void listen_close(struct listen *listen)
{
	if (!listen)
		return;
	PQfreemem(listen->taken);
	db_close(listen->db);
	free(listen);
}

/* A hint need not be durable: without waiting for the disk it is told sooner. */
static enum hx_code begin_listening(struct listen *listen, struct hx_error *err)
{
	char sql[CHANNEL_BYTES_MAX + 64];
	enum hx_code code;

	snprintf(sql, sizeof sql, "SET synchronous_commit = off; LISTEN %s", listen->channel);
	code = pg_run_text(pg_of(listen), sql, ANSWER_MS, /* ret_res= */ NULL, err);
	listen->listening = !code;
	return code;
}

enum hx_code listen_connect(struct listen *listen, struct hx_error *err)
{
	enum hx_code code;

	if (!pg_of(listen)->conn)
		listen->listening = false;
	if (listen->listening)
		return HX_OK;
	code = listen->db->driver->begin(listen->db, err); /* sends nothing, and connects again */
	if (!code)
		code = begin_listening(listen, err);
	if (code && pg_of(listen)->conn)
		pg_lose(pg_of(listen)); /* a session that cannot listen is of no use: the next one may */
	return code ? HX_STORE_UNAVAILABLE : HX_OK;
}

int listen_fd(const struct listen *listen)
{
	return pg_of(listen)->conn ? PQsocket(pg_of(listen)->conn) : -1;
}

enum hx_code listen_tell(struct listen *listen, const char *payload, struct hx_error *err)
{
	static const char form[] = "NOTIFY %s, '%s'";
	char sql[LISTEN_PAYLOAD_BYTES_MAX + CHANNEL_BYTES_MAX + sizeof form];

	ASSERT(strlen(payload) <= LISTEN_PAYLOAD_BYTES_MAX && !strchr(payload, '\''));
	if (!pg_of(listen)->conn)
		return error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost");
	snprintf(sql, sizeof sql, form, listen->channel, payload);
	return pg_run_text(pg_of(listen), sql, ANSWER_MS, /* ret_res= */ NULL, err);
}

enum hx_code listen_take(struct listen *listen, const char **ret_payload, struct hx_error *err)
{
	PGconn *conn = pg_of(listen)->conn;

	PQfreemem(listen->taken);
	listen->taken = NULL;
	if (!conn)
		return error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost");
	if (!PQconsumeInput(conn) || PQstatus(conn) == CONNECTION_BAD)
		return pg_lost(pg_of(listen), err, "the connection was lost");
	listen->taken = PQnotifies(conn);
	*ret_payload = listen->taken ? listen->taken->extra : NULL;
	return HX_OK;
}
