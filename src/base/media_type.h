/* What a Content-Type says. */
#pragma once

#include "base/slice.h"

/* application/json, text/json, or any type with the suffix +json (RFC 6839), in any case; parameters count for nothing. */
bool media_type_is_json(struct slice content_type);
