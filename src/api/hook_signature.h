/*
 * Whose delivery is it? The signature of a hook's scheme, over the bytes as they were sent.
 *
 *   scheme              header                                  what is signed              with
 *   stripe              Stripe-Signature: t=TIME,v1=HEX,…       TIME.BODY                   the secret as it is
 *   github              X-Hub-Signature-256: sha256=HEX         BODY                        the same
 *   standard-webhooks   webhook-signature: v1,BASE64 …          ID.TIME.BODY, as webhook-id and webhook-timestamp have them
 *                                                                                           base64 after "whsec_"
 *   hmac-sha256         as configured, X-Signature: HEX or BASE64, "sha256=" in front or not   BODY   the secret as it is
 *
 * Any of the secrets will do, so that one can be rotated; all of them are tried, and each comparison takes the same time
 * whatever it finds. A time that is signed must lie within the window, on either side of now.
 */
#pragma once

#include "base/clock.h"
#include "base/strbuf.h"
#include "model/hook.h"
#include "wire/wire.h"

/* The secrets, filled in: as they are keys of an HMAC. */
struct hook_keys {
	size_t n;
	struct slice at[HOOK_SECRETS_MAX];
};

/* The key that this secret stands for, into *ret; HX_CONFIG_ERROR: it is empty, or of no form that the scheme has. */
enum hx_code hook_key_of(const struct hook_config *hook, struct slice secret, struct strbuf *ret,
			 struct hx_error *err) HX_MUST_CHECK;
/* Are the headers there that a signature needs? */
bool hook_has_signature(const struct hook_config *hook, struct wire_fields fields);
/* What is wrong with it, in words; NULL: nothing. */
const char *hook_check_signature(const struct hook_config *hook, const struct hook_keys *keys,
				 struct wire_fields fields, struct slice body, struct wall_time now);
