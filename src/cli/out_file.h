/* What a verb puts into a file that its --output names. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

/* HX_INTERNAL says why it cannot be written. */
enum hx_code out_file_write(const char *path, struct slice text, struct hx_error *err) HX_MUST_CHECK;
