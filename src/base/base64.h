/* Bytes as text: base64 of RFC 4648, with its padding. */
#pragma once

#include "base/slice.h"
#include "base/strbuf.h"

/* Appends it; out->failed when there was no room. */
void base64_append(struct slice bytes, struct strbuf *out);
