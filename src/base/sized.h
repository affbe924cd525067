/*
 * A struct that a program fills, and that begins with its size (hapax.h, HX_SIZE): read into our own form of it, whatever version
 * of the header the program was compiled with.
 */
#pragma once

#include "base/error.h"

/* HX_VALIDATION_ERROR: the size is not set, or the program sets a member that is not known here. name: "hx_caller" */
enum hx_code sized_read(const void *given, void *ret_own, size_t own_bytes, const char *name,
			struct hx_error *err) HX_MUST_CHECK;

#define SIZED_READ(given, own, name, err) sized_read(given, own, sizeof *(own), name, err)
