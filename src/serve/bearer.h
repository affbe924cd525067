/* The key that a request brings along: `Authorization: Bearer KEY` or `X-API-Key: KEY`, for the API and for the gate's own address. */
#pragma once

#include "wire/wire.h"

/* The key, .n 0 without one; another scheme than Bearer is somebody else's business. False: there are several that differ. */
bool bearer_key(struct wire_fields fields, struct slice *ret_key);
