/* Time that can be skipped: see api_test_clock.c. */
#pragma once

#include "base/test_clock.h"
#include "serve/router.h"

/* The last of all routes: it is served where there is such a clock. */
extern const struct route api_test_clock_route;
