/* The address of an http action: checked for its form, not for who answers there. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#define URL_BYTES_MAX 2048

/*
 * http:// or https://, a host (a name, an IPv4 address or an IPv6 address in brackets), a port from 1 to 65535 if
 * any, and visible ASCII after it. Refused, with the reason in the detail: credentials in the address (they would
 * stand in every log; headers take them from the environment) and a fragment (it is never sent).
 */
enum hx_code url_check(struct slice url, struct hx_error *err) HX_MUST_CHECK;
