/* A header that a definition adds to the calls of an http action. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#define HEADER_BYTES_MAX 4096

/* A token of RFC 9110, of 1 to HEADER_BYTES_MAX bytes. */
bool header_name_is_token(struct slice name);
/* Written by the engine or the transport, and by nobody else: Idempotency-Key, Hapax-*, traceparent, Content-Length … */
bool header_name_is_reserved(struct slice name);

/*
 * The name is a token of RFC 9110 and not reserved. The value has no CR, LF, NUL or other control character but the tab, and every
 * ${…} in it is ${env:NAME} or ${file:PATH}: a misspelt one would be sent as it stands. Otherwise
 * HX_VALIDATION_ERROR with the reason; the value is not repeated in it.
 */
enum hx_code header_check(struct slice name, struct slice value, struct hx_error *err) HX_MUST_CHECK;
/* By its name it carries a secret, and the value has no ${…}: it stands there for everybody who may read definitions. */
bool header_has_literal_secret(struct slice name, struct slice value);
