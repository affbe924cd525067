/* Errors as values: one closed list (hapax.h), and the helper that fills in the detail. */
#pragma once

#include <stddef.h>

#include "hapax.h"

#define HX_MUST_CHECK __attribute__((warn_unused_result))
#define HX_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define UNUSED __attribute__((unused)) /* after a parameter that a table of functions has, and this one needs not */
/* The object around one that is embedded in it. */
#define CONTAINER_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

/*
 * Sets *err (which may be NULL) and returns code, so that `return error_set(err, HX_X, "...")` reads as one step.
 * An over-long detail is cut between two characters, never inside of one. The arguments may point into *err:
 * `error_set(err, err->code, "%s: %s", path, err->detail)` says more about the same error.
 */
enum hx_code error_set(struct hx_error *err, enum hx_code code, const char *format, ...) HX_PRINTF(3, 4);

/* The last line of what makes a thing: what it made is the caller's, or it is discarded as far as it got. code is a variable. */
#define HAND_OVER(code, made, discard, ret) ((code) ? (discard(made), (code)) : (*(ret) = (made), (code)))

/* For what only a programmer can break, in release builds too: prints the place and aborts. */
#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__))
/* The same where it would cost too much, or where being wrong about it would do more harm than what it guards: in the builds with
 * sanitizers, and with `make DEBUG=1`. */
#ifdef HX_DEBUG
#define DEBUG_ASSERT(cond) ASSERT(cond)
#else
#define DEBUG_ASSERT(cond) ((void)sizeof(cond))
#endif
_Noreturn void assert_failed(const char *cond, const char *file, int line);
