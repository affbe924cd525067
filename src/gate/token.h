/*
 * Tokens tell the holders of a record apart: 128 random bits, drawn from the system a page at a time. A process that was
 * forked draws a page of its own, since two holders with one token would both be right.
 */
#pragma once

#include <hapax.h>

#include "base/error.h"

/* HX_BUSY: the system has no random numbers. Safe in all threads. */
enum hx_code gate_token_draw(unsigned char ret_token[HX_GATE_TOKEN_BYTES], struct hx_error *err) HX_MUST_CHECK;
