/* See session.h. */
#include "engine/session.h"

#include <stdio.h>

#include "base/hmac.h"

#define PREFIX "hs"
#define UNTIL_PREFIX "at"                                        /* a number is written as an id is */
#define SIGNED_CHARS (SESSION_TEXT_CHARS - 2 * SHA256_BYTES - 1) /* what the mac is over */

static void write_signed(const struct session *session, char ret_text[SIGNED_CHARS + 1])
{
	int n = snprintf(ret_text, SIGNED_CHARS + 1, "%s_%s", id_text(PREFIX, session->key).text,
			 id_text(UNTIL_PREFIX, session->until_ms).text + sizeof UNTIL_PREFIX);

	ASSERT(n == SIGNED_CHARS);
}

void session_sign(struct session *session, const uint8_t secret[SESSION_SECRET_BYTES],
		  const uint8_t digest[SHA256_BYTES])
{
	uint8_t mac[SHA256_BYTES];
	char text[SIGNED_CHARS + 1];

	write_signed(session, text);
	hmac_sha256(slice_of((const char *)secret, SESSION_SECRET_BYTES),
		    (const struct slice[]){slice_of((const char *)digest, SHA256_BYTES), slice_of(text, SIGNED_CHARS)},
		    2, mac);
	sha256_hex(mac, session->mac);
}

void session_format(const struct session *session, char ret_text[SESSION_TEXT_CHARS + 1])
{
	write_signed(session, ret_text);
	snprintf(ret_text + SIGNED_CHARS, SESSION_TEXT_CHARS + 1 - SIGNED_CHARS, "_%s", session->mac);
}

bool session_parse(struct slice text, struct session *ret)
{
	size_t key_chars = sizeof PREFIX + 13;
	char until[ID_TEXT_BYTES];

	if (text.n != SESSION_TEXT_CHARS || text.p[key_chars] != '_' || text.p[SIGNED_CHARS] != '_')
		return false;
	snprintf(until, sizeof until, UNTIL_PREFIX "_%.13s", text.p + key_chars + 1);
	memcpy(ret->mac, text.p + SIGNED_CHARS + 1, sizeof ret->mac - 1);
	ret->mac[sizeof ret->mac - 1] = '\0';
	return id_parse(PREFIX, slice_of(text.p, key_chars), &ret->key) &&
	       id_parse(UNTIL_PREFIX, slice_str(until), &ret->until_ms);
}

bool session_is_good(const struct session *session, const uint8_t secret[SESSION_SECRET_BYTES],
		     const uint8_t digest[SHA256_BYTES], struct mono_time now)
{
	struct session right = *session;

	session_sign(&right, secret, digest);
	return bytes_equal_slowly(right.mac, session->mac, sizeof right.mac) && now.ns / 1000000 < session->until_ms;
}
