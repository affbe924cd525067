/* Time that can be skipped: see api_test_clock.c. */
#pragma once

#include "base/test_clock.h"
#include "serve/router.h"

/* All that is served, and the route that moves the time. Made anew with each call, and kept for the life of the program. */
const struct route *api_routes_with_clock(size_t *ret_n);
