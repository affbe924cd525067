/* Digits: decimal numbers without a sign, and bytes in hex. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* The text is decimal digits and nothing else, at least one, and a number of at most max. Zeros in front count for nothing. */
bool digits_number(struct slice text, uint64_t max, uint64_t *ret_number);

/* 0 to 15, in either case; -1: it is none. */
int hex_digit(char c);
/* 2 * n of them in lower case, with a NUL. */
void hex_write(const void *bytes, size_t n, char *ret_text);
/* The text is 2 * n of them, in either case. */
bool hex_read(struct slice text, size_t n, unsigned char *ret_bytes);
