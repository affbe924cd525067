/*
 * Request targets and hosts: the parts of a request that say where it goes.
 *
 *   /path?query              origin-form
 *   http://host/path?query   absolute-form (also https, since TLS may end in front of us)
 *   *                        asterisk-form, for OPTIONS
 *
 * Paths are cut and checked, never decoded, never normalised: `/a/../b` stays what it is, for the gate too.
 */
#pragma once

#include "wire/wire.h"

/*
 * Sets form, path, query, has_query, and host for an absolute-form; needs method and target. Returns NULL, or what
 * is wrong with it, in constant words.
 */
const char *target_parse(struct wire_request *request) HX_MUST_CHECK;

/* A name or IPv4 address of unreserved characters, or an IPv6 address in brackets, then perhaps ":" and a port. */
bool host_valid(struct slice host);
