/*
 * A session: what a browser has in place of an API key, in a cookie that no script can read.
 *
 *   hs_0ahqhgtdhmw01_00000000a4b2c_9f31…      its text
 *      ╰ id of key ╯ ╰─ until ───╯ ╰ mac: HMAC-SHA-256 over what stands before it, by secret and digest of the key
 *
 * Nothing is kept for one: it is judged by the key that it is of, each time, and ends with it (engine/keyring.h). The secret is this
 * process's own, drawn at its start and told to nobody, so whoever has read the store (which has the digests) makes none. It is good
 * on the node that made it until that ends, or SESSION_MS are over. `until` is of this machine's monotonic clock.
 */
#pragma once

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"

#define SESSION_MS (12 * 3600 * 1000)
#define SESSION_SECRET_BYTES 32
#define SESSION_TEXT_CHARS (2 + 1 + 13 + 1 + 13 + 1 + 2 * SHA256_BYTES)

struct session {
	int64_t key; /* its id */
	int64_t until_ms;
	char mac[2 * SHA256_BYTES + 1];
};

/* With its mac. */
void session_sign(struct session *session, const uint8_t secret[SESSION_SECRET_BYTES],
		  const uint8_t digest[SHA256_BYTES]);
void session_format(const struct session *session, char ret_text[SESSION_TEXT_CHARS + 1]);
/* False: this is none. What it says is not yet believed. */
bool session_parse(struct slice text, struct session *ret_session);
/* Was it signed so, and is it not over? */
bool session_is_good(const struct session *session, const uint8_t secret[SESSION_SECRET_BYTES],
		     const uint8_t digest[SHA256_BYTES], struct mono_time now);
