/* HMAC-SHA-256 (RFC 2104), and comparing what must not be found out byte by byte. */
#pragma once

#include "base/hash.h"

/* Of the parts, one after the other. At most HMAC_PARTS_MAX. */
#define HMAC_PARTS_MAX 6
void hmac_sha256(struct slice key, const struct slice parts[], size_t n, uint8_t ret_mac[SHA256_BYTES]);
/* In a time that depends on n alone. */
bool bytes_equal_slowly(const void *a, const void *b, size_t n);
