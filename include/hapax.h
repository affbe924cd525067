/*
 * hapax.h — the public face of libhapax.
 *
 * Hapax moves a business process forward step by step, each step's effect once. This header is what an
 * embedding program sees. It grows with the engine; everything declared here is exported and stable,
 * everything else in the library is hidden by the linker's version script.
 *
 * Errors are values: a call returns `enum hx_code` and, where there is more to say, fills a caller-supplied
 * `struct hx_error`. The list below is the only list: text, HTTP status and exit code all come from it.
 */
#ifndef HAPAX_H
#define HAPAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HX_VERSION "0.1.0"

/* X(name, http status, exit code, text). The name without HX_ is the `code` of problem+json. */
#define HX_CODES(X)                                                                                                    \
	X(OK, 200, 0, "ok")                                                                                            \
	X(VALIDATION_ERROR, 400, 2, "the request is not valid")                                                        \
	X(BAD_REQUEST, 400, 2, "the request is not well-formed HTTP")                                                  \
	X(UNAUTHENTICATED, 401, 77, "a valid API key is needed")                                                       \
	X(FORBIDDEN, 403, 77, "this key may not do that")                                                              \
	X(REQUESTER_NOT_ALLOWED, 403, 77, "this requester may not fire the step")                                      \
	X(NOT_FOUND, 404, 4, "there is no such thing here")                                                            \
	X(METHOD_NOT_ALLOWED, 405, 2, "this method is not for this path")                                              \
	X(REQUEST_TIMEOUT, 408, 75, "the request did not arrive in time")                                              \
	X(WRONG_STATUS, 409, 5, "the subject is not in the status that this needs")                                    \
	X(CLAIM_FAILED, 409, 5, "another operation is already in progress")                                            \
	X(ALREADY_EXISTS, 409, 5, "there is one already")                                                              \
	X(CONCURRENCY_ERROR, 409, 5, "the subject was changed by somebody else in between")                            \
	X(STALE_FENCE, 409, 5, "the claim has passed to another owner")                                                \
	X(ENTRY_LOCKED, 409, 5, "it is being processed, please do not submit it again")                                \
	X(TOO_LARGE, 413, 6, "a limit was exceeded")                                                                   \
	X(URI_TOO_LONG, 414, 6, "the request line is too long")                                                        \
	X(EXPECTATION_FAILED, 417, 2, "the expectation is not one that can be met")                                    \
	X(INVALID, 422, 2, "the action rejected its input")                                                            \
	X(DEFINITION_INVALID, 422, 1, "a definition or the configuration has errors")                                  \
	X(HEAD_TOO_LARGE, 431, 6, "the header fields are too large")                                                   \
	X(NO_MEMORY, 500, 70, "out of memory")                                                                         \
	X(INTERNAL, 500, 70, "an internal error")                                                                      \
	X(DATA_ERROR, 500, 70, "the store refused the data of one unit of work")                                       \
	X(SCHEMA_MISMATCH, 500, 78, "the store's schema does not fit this program")                                    \
	X(CONFIG_ERROR, 500, 78, "the configuration is not valid")                                                     \
	X(NOT_IMPLEMENTED, 501, 2, "this method or coding is not known here")                                          \
	X(ACTION_FAILED, 502, 7, "the action failed")                                                                  \
	X(BAD_GATEWAY, 502, 76, "the upstream did not answer in well-formed HTTP")                                     \
	X(STORE_UNAVAILABLE, 503, 69, "the store cannot be reached")                                                   \
	X(SERVER_UNAVAILABLE, 503, 69, "no server can be reached")                                                     \
	X(BUSY, 503, 75, "too much work is waiting already")                                                           \
	X(STOPPING, 503, 75, "the engine is stopping")                                                                 \
	X(OUTCOME_UNKNOWN, 504, 8, "it is not known whether this took effect")                                         \
	X(VERSION_NOT_SUPPORTED, 505, 2, "only HTTP/1.0 and HTTP/1.1 are spoken here")

enum hx_code {
#define X(name, http, exit_code, text) HX_##name,
	HX_CODES(X)
#undef X
		HX_CODE_COUNT
};

/* What went wrong, in words. `detail` is always terminated; an over-long detail is cut. */
struct hx_error {
	enum hx_code code;
	char detail[240];
};

/* The stable upper-case name of a code, e.g. "CLAIM_FAILED". Never NULL, also for a number out of range. */
const char *hx_code_name(enum hx_code code);
/* One sentence for people. */
const char *hx_code_text(enum hx_code code);
/* The HTTP status that the API answers with. */
int hx_code_http_status(enum hx_code code);
/* The exit code of the command line. */
int hx_code_exit(enum hx_code code);

/* The version of the library that is running (the header's is HX_VERSION). */
const char *hx_version(void);

#ifdef __cplusplus
}
#endif
#endif
