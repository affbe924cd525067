/* The objects that the server's configuration and the gate's both have. */
#ifndef HX_MODEL_CONFIG_FIELDS_H
#define HX_MODEL_CONFIG_FIELDS_H

#include "model/fields.h"

extern const struct field drain_fields[]; /* {"notice": DURATION}, where "0s" is none: an int64_t */
extern const struct field log_fields[];   /* {"level": "debug" | "info" | "warn" | "error"}: an enum log_level */

#endif
