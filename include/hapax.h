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
	X(KEY_REQUIRED, 400, 2, "an idempotency key is needed here")                                                   \
	X(KEY_INVALID, 400, 2, "the idempotency key is not valid")                                                     \
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
	X(ALREADY_COMPLETED, 409, 5, "it has been completed, and cannot be undone this way")                           \
	X(STALE_FENCE, 409, 5, "the claim has passed to another owner")                                                \
	X(ENTRY_LOCKED, 409, 5, "it is being processed, please do not submit it again")                                \
	X(IN_FLIGHT, 409, 5, "the first request with this key is still in flight, or its outcome is not known")        \
	X(RESPONSE_NOT_STORED, 409, 5, "it was done, but its answer was too large to be stored")                       \
	X(RUN_EXPIRED, 410, 4, "the run has ended long ago, and only its key is kept")                                 \
	X(TOO_LARGE, 413, 6, "a limit was exceeded")                                                                   \
	X(URI_TOO_LONG, 414, 6, "the request line is too long")                                                        \
	X(EXPECTATION_FAILED, 417, 2, "the expectation is not one that can be met")                                    \
	X(INVALID, 422, 2, "the action rejected its input")                                                            \
	X(FINGERPRINT_MISMATCH, 422, 2, "this key was used with another request")                                      \
	X(DEFINITION_INVALID, 422, 1, "a definition or the configuration has errors")                                  \
	X(HEAD_TOO_LARGE, 431, 6, "the header fields are too large")                                                   \
	X(NO_MEMORY, 500, 70, "out of memory")                                                                         \
	X(INTERNAL, 500, 70, "an internal error")                                                                      \
	X(DATA_ERROR, 500, 70, "the store refused the data of one unit of work")                                       \
	X(PROMISE_BROKEN, 500, 1, "what is in the store breaks a promise")                                             \
	X(SCHEMA_MISMATCH, 500, 78, "the store's schema does not fit this program")                                    \
	X(CONFIG_ERROR, 500, 78, "the configuration is not valid")                                                     \
	X(NOT_IMPLEMENTED, 501, 2, "this method or coding is not known here")                                          \
	X(ACTION_FAILED, 502, 7, "the action failed")                                                                  \
	X(BAD_GATEWAY, 502, 76, "the upstream did not answer in well-formed HTTP")                                     \
	X(UPSTREAM_UNREACHABLE, 502, 76, "the upstream could not be reached; nothing was sent")                        \
	X(STORE_UNAVAILABLE, 503, 69, "the store cannot be reached")                                                   \
	X(SERVER_UNAVAILABLE, 503, 69, "no server can be reached")                                                     \
	X(BUSY, 503, 75, "too much work is waiting already")                                                           \
	X(STOPPING, 503, 75, "the engine is stopping")                                                                 \
	X(OUTCOME_UNKNOWN, 504, 8, "it is not known whether this took effect")                                         \
	X(UPSTREAM_TIMEOUT, 504, 76, "the upstream did not answer in time; it is not known what it did")               \
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

/* ---- the gate: one request per key ---- */

#define HX_GATE_KEY_BYTES 32   /* scope and key of a request, hashed */
#define HX_GATE_TOKEN_BYTES 16 /* random: who holds the record */

/* What became of one request, in events, in metrics and (but for the last two) in Idempotency-Status. */
enum hx_gate_outcome {
	HX_GATE_CREATED,     /* executed, and its answer stored */
	HX_GATE_REPLAYED,    /* answered with what was stored */
	HX_GATE_CONFLICT,    /* 409: the first is in flight, its outcome unknown, or its answer was not stored */
	HX_GATE_MISMATCH,    /* 422: the key was used for another request */
	HX_GATE_STALE,       /* executed, but its lease was over and the record is another's by now, or gone */
	HX_GATE_UNSTORED,    /* executed, but the store failed when the answer was to be kept */
	HX_GATE_RELEASED,    /* nothing is kept: the answer is not one to be stored, or nothing was executed */
	HX_GATE_STORE_ERROR, /* 503: the store could not be asked, nothing was executed */
	HX_GATE_OUTCOMES
};
/* "created", "replayed" … */
const char *hx_gate_outcome_name(enum hx_gate_outcome outcome);

/*
 * A record is PROCESSING from its acquisition on, and COMPLETED from its completion until its ttl is over:
 *
 *            acquire                       complete (token)                ttl after completion
 *   absent ───────────▶ PROCESSING(token) ──────────────────▶ COMPLETED ────────────────────────▶ absent
 *      ▲                 │   │    ▲ acquire after the lease, same fingerprint, not `hold`: a new token
 *      │ remove (token)  │   └────┘
 *      └─────────────────┘
 */
struct hx_gate_claim {
	unsigned char key[HX_GATE_KEY_BYTES];
	unsigned char fingerprint[HX_GATE_KEY_BYTES]; /* all zero: off */
	unsigned char token[HX_GATE_TOKEN_BYTES];
	int64_t lease_ms; /* how long the holder is trusted to be at work */
	int64_t ttl_ms;   /* how long the record stays: from the end of the lease on, and from its completion on */
	int hold;         /* not 0: never taken over and never expired while PROCESSING; for a person to decide */
};

enum hx_gate_verdict {
	HX_GATE_ACQUIRED,  /* it is the caller's, under its token */
	HX_GATE_COMPLETED, /* `response` is what was stored */
	HX_GATE_IN_FLIGHT, /* somebody has it, for lease_left_ms yet */
	HX_GATE_HELD,      /* its lease is over, and it waits for a person */
	HX_GATE_MISMATCHED /* there is one with another fingerprint, whatever its state */
};

struct hx_gate_found {
	enum hx_gate_verdict verdict;
	int64_t created_ms;    /* since the epoch; of the first acquisition, never changed. Not for HX_GATE_ACQUIRED */
	int64_t lease_left_ms; /* HX_GATE_IN_FLIGHT */
	const void *response;  /* HX_GATE_COMPLETED: valid until the next call with the same store in this thread */
	size_t response_bytes;
};

/*
 * A store for records, for those who have one of their own. Each function is one atomic step, and may be called from
 * several threads at once. An expired record counts as absent, whether it has been removed or not. All return HX_OK
 * or HX_STORE_UNAVAILABLE; after the latter it is not known whether the step was taken, so every step must be one
 * that can be repeated with the same token.
 */
struct hx_gate_store {
	void *data; /* handed to each function */
	enum hx_code (*acquire)(void *data, const struct hx_gate_claim *claim, struct hx_gate_found *ret_found);
	/* *ret_stale: there is no record with this token (any more), and nothing was changed. The response is kept as
	 * it is, byte for byte. */
	enum hx_code (*complete)(void *data, const unsigned char *key, const unsigned char *token, const void *response,
				 size_t response_bytes, int64_t ttl_ms, int *ret_stale);
	/*
	 * Of a PROCESSING record. *ret_stale: there is one that is COMPLETED or has another token, and it was left alone. No
	 * record at all is fine. One that was taken over is not removed, since the holder before may have executed: only
	 * its lease ends.
	 */
	enum hx_code (*remove)(void *data, const unsigned char *key, const unsigned char *token, int *ret_stale);
	/* Removes up to `budget` expired records; *ret_removed says how many. NULL: the store does so by itself. */
	enum hx_code (*sweep)(void *data, int64_t budget, int64_t *ret_removed);
};

/*
 * ---- the gate in a program of your own ----
 *
 *	struct hx_gate_options options = {.store_url = "sqlite:shop.db"};
 *	struct hx_gate_request request = {.method = "POST", .path = "/payments", .key = header, .body = body, …};
 *
 *	code = hx_gate_open(&options, &gate, &error);                once
 *	code = hx_gate_begin(gate, &request, &entry, NULL, &error);  for each request
 *	if (code)                                                    answer with hx_code_http_status(code)
 *	else if (hx_gate_replay(entry))                              answer with that
 *	else                                                         work, then complete it (or abort), then answer
 *		code = hx_gate_complete(entry, &response, writes_n, writes, &error);
 *	hx_gate_entry_free(entry);
 *
 * The transactional gate: what the work wants to write into the same database goes along as `writes`, and is committed in
 * one unit with the record. Whenever the process dies, both are there or neither is: a retry gets the answer of what was
 * written, or finds nothing and writes it once. That needs a store that is a database (sqlite:, postgres://). Work that
 * has an effect elsewhere is protected as by `hapax gate`: a crash in the middle leaves a record whose lease runs out,
 * and then it is done again (or, with `hold`, not before a person has forgotten the record).
 *
 * All calls block until the store has answered, and may be made from any thread; an entry belongs to one at a time.
 */
struct hx_gate;
struct hx_gate_entry;

/* What became of one request. Texts live only during the call. */
struct hx_gate_event {
	enum hx_gate_outcome outcome;
	enum hx_code code;                  /* with conflict, mismatch and store_error: what hx_gate_begin() returns */
	const char *method, *path, *tenant; /* as in the request */
	const char *key;                    /* decoded */
};

struct hx_gate_options {
	/* sqlite:PATH (which this process then has for itself: PATH.lock), postgres://…, redis://…, memory: */
	const char *store_url;
	const struct hx_gate_store *store; /* instead of the url: one of your own; copied */
	const char *space;                 /* whose records these are, in a store that several use; NULL: "embedded" */
	int64_t ttl_ms;                    /* how long answers are kept; 0: 24 hours */
	int64_t lease_ms;                  /* how long the work may take; 0: 60 seconds */
	int hold;           /* not 0: work whose outcome is unknown is never begun again, but waits for a person */
	int no_fingerprint; /* not 0: the same key with another body is a replay too, not HX_FINGERPRINT_MISMATCH */
	/*
	 * Called after the fact, in the thread of the call that it is about, before that returns: the record has been
	 * settled, and nothing that the callback does (or how long it takes) changes that. May be NULL.
	 */
	void (*on_event)(void *data, const struct hx_gate_event *event);
	void *data;
};

/* Brings the store's schema up to date where it is a database. HX_CONFIG_ERROR, HX_BUSY (another process has this SQLite
 * file), HX_STORE_UNAVAILABLE and what else a store may say. */
enum hx_code hx_gate_open(const struct hx_gate_options *options, struct hx_gate **ret_gate, struct hx_error *err);
/* All entries have been freed. Takes NULL. */
void hx_gate_close(struct hx_gate *gate);

struct hx_gate_request {
	const char *method,
		*path;            /* the path as it was sent, without its query; both NULL: the key counts everywhere */
	const char *tenant;       /* whose key it is; NULL: there are no tenants */
	const char *key;          /* the header's value as it was sent, quoted or not; NULL: there was none */
	const char *content_type; /* JSON is compared by what it says, all else by its bytes; NULL: none */
	const void *body;
	size_t body_bytes;
};

struct hx_gate_field {
	const char *name, *value;
};

struct hx_gate_response {
	int status;
	/*
	 * Kept: Content-Type, Content-Encoding, Content-Language, Location, ETag, Cache-Control and X-*. Others are left
	 * out in silence: they are the transport's, or not for two clients.
	 */
	size_t fields_n;
	const struct hx_gate_field *fields;
	const void *body;
	size_t body_bytes; /* a body of more than HX_GATE_BODY_BYTES_MAX is not kept: see HX_RESPONSE_NOT_STORED */
};
#define HX_GATE_BODY_BYTES_MAX 1048576

/*
 * HX_OK, and an entry: the record is ours and the work is to be done, or hx_gate_replay() has the answer. Else:
 *   HX_KEY_REQUIRED, HX_KEY_INVALID   there is no key, or none that can be read
 *   HX_IN_FLIGHT                      somebody is at it, or nobody knows: *ret_retry_after_ms (may be NULL) is what is
 *                                     left of the lease, 0: it is held for a person
 *   HX_FINGERPRINT_MISMATCH           the key was used for another request
 *   HX_RESPONSE_NOT_STORED            it was done, and its body was too large to be kept
 *   HX_STORE_UNAVAILABLE              nothing may be done now
 */
enum hx_code hx_gate_begin(struct hx_gate *gate, const struct hx_gate_request *request,
			   struct hx_gate_entry **ret_entry, int64_t *ret_retry_after_ms, struct hx_error *err);
/* The stored answer, valid until the entry is freed; NULL: the work is this caller's. */
const struct hx_gate_response *hx_gate_replay(const struct hx_gate_entry *entry);

enum hx_value_type { HX_VALUE_NULL, HX_VALUE_INT, HX_VALUE_TEXT, HX_VALUE_BYTES };
struct hx_value {
	enum hx_value_type type;
	int64_t number;    /* HX_VALUE_INT */
	const void *bytes; /* HX_VALUE_TEXT (UTF-8), HX_VALUE_BYTES */
	size_t bytes_n;
};

/* One statement of the program's own, with parameters ?1, ?2 … for the values; never paste a value into the text. */
struct hx_gate_write {
	const char *sql; /* one INSERT, UPDATE, DELETE … */
	size_t params_n; /* at most HX_GATE_PARAMS_MAX */
	const struct hx_value *params;
	int must_change; /* not 0: if it changes no row, nothing of the whole unit is written */
};
#define HX_GATE_PARAMS_MAX 12
#define HX_GATE_WRITES_MAX 16
#define HX_GATE_SQL_BYTES_MAX 4096
#define HX_GATE_SQL_TEXTS_MAX 200 /* different ones, in the life of a gate */

/*
 * Stores the answer, and what is to be written along with it. Whether an error is an answer to be stored, or one after
 * which hx_gate_abort() lets the client try again, is the caller's choice.
 *   HX_OK                 durable, all of it
 *   HX_STALE_FENCE        the lease was over and the record is another's by now, or gone: nothing was written
 *   HX_INVALID            a write that must change a row changed none (the detail says which): nothing was written
 *   HX_DATA_ERROR         the store refused a write (the detail has its words): nothing was written
 *   HX_VALIDATION_ERROR   the writes are not as described above, or this store cannot take them: nothing was written
 *   HX_STORE_UNAVAILABLE  with writes: nothing was written. Without: it is not known whether the answer is stored
 *   HX_OUTCOME_UNKNOWN    it is not known whether all was written, or nothing
 * After the last two the same call may be repeated, and then never writes twice. After the others the entry is as before,
 * and can be completed with another answer, or aborted.
 */
enum hx_code hx_gate_complete(struct hx_gate_entry *entry, const struct hx_gate_response *response, size_t writes_n,
			      const struct hx_gate_write *writes, struct hx_error *err);
/*
 * The work was certainly not done: lets the key go, so that a retry does it. HX_STALE_FENCE: it is another's by now, and
 * was left alone. HX_STORE_UNAVAILABLE: it goes when its lease is over. HX_WRONG_STATUS: there is nothing to let go, or
 * the completion may have been written.
 */
enum hx_code hx_gate_abort(struct hx_gate_entry *entry, struct hx_error *err);
/* Of a record that was neither completed nor aborted the lease stays, as if the process had died. Takes NULL. */
void hx_gate_entry_free(struct hx_gate_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
