/*
 * A session of its own on PostgreSQL that hears what other sessions tell (LISTEN, NOTIFY). What it carries is a hint and
 * nothing more: whatever is told while it is not connected is not heard.
 *
 * One thread at a time. It does not connect again by itself: after HX_STORE_UNAVAILABLE its owner calls
 * listen_connect() until that succeeds.
 */
#pragma once

#include "db/driver.h"

#define LISTEN_PAYLOAD_BYTES_MAX 7999 /* of the server */

struct listen;

/* Connects. The channel is a plain lower-case name, and so is what is told: neither is quoted. */
enum hx_code listen_open(const struct db_options *options, const char *channel, struct listen **ret_listen,
			 struct hx_error *err) HX_MUST_CHECK;
/* Takes NULL. */
void listen_close(struct listen *listen);
/* Connects again where need be. HX_STORE_UNAVAILABLE, after at most two seconds. */
enum hx_code listen_connect(struct listen *listen, struct hx_error *err) HX_MUST_CHECK;
/* To poll for something to read; -1: it is not connected. */
int listen_fd(const struct listen *listen);
/* Tells all that listen, this one too. The payload is of letters, digits and blanks. */
enum hx_code listen_tell(struct listen *listen, const char *payload, struct hx_error *err) HX_MUST_CHECK;
/*
 * Takes what has come in, without waiting, one at a time: *ret_payload is valid until the next call; NULL: there is no more.
 */
enum hx_code listen_take(struct listen *listen, const char **ret_payload, struct hx_error *err) HX_MUST_CHECK;
