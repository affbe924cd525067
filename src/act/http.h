/*
 * The http kind: POST by the same client that the gate has (wire/upstream.h), on a few loops with a thread each.
 *
 * What it promises of a call is that client's promise: a call is sent once. From the moment its first byte has left until a whole
 * answer is there, whatever happens is *unknown*; before that moment nothing was sent, and that is certain. An action that is
 * `idempotent` is sent a second time if a connection that was idle dies without an answer, which is what its word means.
 *
 *   connection   before the first byte               after it, without a whole answer
 *   idle         found closed: another one           UNKNOWN; idempotent: once more, on a new one
 *   new          FAILED, nothing was sent            UNKNOWN
 *
 * Each address is judged by outbound.h when it is connected to. TLS is verified. There are no redirects, proxies of the environment, other
 * protocols, cookies or credentials of its own.
 */
#pragma once

#include "act/kind.h"
#include "act/outbound.h"

struct http_options {
	const struct outbound *outbound;         /* NULL: public addresses only. Must outlive the kind */
	const struct secret_rules *secret_rules; /* NULL: any may be named. Likewise */
	const char *ca_file;                     /* certificates that are trusted besides the system's; NULL: none */
	size_t loops;
};

enum hx_code http_kind_new(const struct http_options *options, size_t slots, struct kind **ret_kind,
			   struct hx_error *err) HX_MUST_CHECK;
