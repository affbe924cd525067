/* The objects that the server's configuration and the gate's both have. */
#pragma once

#include "model/fields.h"

extern const struct field drain_fields[]; /* {"notice": DURATION}, where "0s" is none: an int64_t */
extern const struct field log_fields[];   /* {"level": "debug" | "info" | "warn" | "error"}: an enum log_level */
