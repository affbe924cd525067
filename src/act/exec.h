/*
 * The exec kind: an argv array run as a process of its own (process.h), never through a shell. Off unless the
 * configuration enables it.
 *
 *   stdin         the call's input, JSON
 *   environment   PATH, LANG, HAPAX_IDEMPOTENCY_KEY, HAPAX_ATTEMPT, HAPAX_FENCE (under a lease), TRACEPARENT (if any); no more
 *   folder, umask the server's
 *   stdout        the output: JSON, or nothing for null
 *   stderr        its tail becomes the words of a failure
 *
 *   exit code                                     outcome
 *   0    and JSON or nothing on stdout            OK, or INVALID with "is_invalid": true at the top
 *   65   EX_DATAERR                               INVALID, stdout being the reason
 *   75   EX_TEMPFAIL                              FAILED: certainly not done, try again
 *   64   EX_USAGE, 77 EX_NOPERM, 78 EX_CONFIG     FAILED_FOR_GOOD: certainly not done, trying again is pointless
 *   any other, a signal, the time is over         UNKNOWN
 *   it could not be started                       FAILED_FOR_GOOD; FAILED when memory or processes ran short
 *
 * Why "any other" is unknown: 1 and 2 are what shells and interpreters return when a script dies half-way (an
 * uncaught exception, `set -e`, a syntax error on line 50), after whatever it did on the lines before. Only the codes
 * of sysexits.h, which nobody returns by accident, are taken as a promise that nothing was done.
 */
#pragma once

#include "act/kind.h"

enum hx_code exec_kind_new(size_t slots, struct kind **ret_kind, struct hx_error *err) HX_MUST_CHECK;
