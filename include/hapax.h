/*
 * hapax.h — the public face of libhapax.
 *
 * Hapax moves a business process forward step by step, each step's effect once. This header is what an embedding program sees. All that
 * it declares is exported and stable, everything else in the library is hidden by the linker's version script.
 *
 * Errors are values: a call returns `enum hx_code` and, where there is more to say, fills a caller-supplied `struct hx_error`. The list
 * below is the only list: text, HTTP status and exit code all come from it.
 */
#ifndef HAPAX_H
#define HAPAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HX_VERSION "0.1.0"
#define HX_VERSION_NUMBER 100 /* 10000 × major + 100 × minor + patch */

/*
 * Structs that a program fills begin with their size, so that a later version can add members at their ends: what an older program
 * does not have is 0, and a newer program's is refused (HX_VALIDATION_ERROR) unless what this version does not know is all 0. A size
 * that is not set is refused, too.
 *	struct hx_run_request request = {HX_SIZE(hx_run_request), .workflow = "order"};
 * Elements of arrays (hx_native, hx_gate_field, hx_gate_write, hx_value) have none and never change; what the library fills
 * (hx_result, hx_native_call …) may get members at its end.
 */
#define HX_SIZE(type) .size = sizeof(struct type)

/*
 * X(name, number, http status, exit code, text). The name without HX_ is the `code` of problem+json. They stand in the order of
 * their statuses; the number is for ever: a new one takes a greater one than any, wherever it stands.
 */
/* clang-format off */
#define HX_CODES(X) \
	X(OK, 0, 200, 0, "ok") \
	X(VALIDATION_ERROR, 1, 400, 2, "the request is not valid") \
	X(BAD_REQUEST, 2, 400, 2, "the request is not well-formed HTTP") \
	X(KEY_REQUIRED, 3, 400, 2, "an idempotency key is needed here") \
	X(KEY_INVALID, 4, 400, 2, "the idempotency key is not valid") \
	X(KEY_RESERVED, 51, 400, 2, "keys of this form are the engine's own") \
	X(BAD_QUERY, 55, 400, 2, "the query cannot be understood") \
	X(UNAUTHENTICATED, 5, 401, 77, "a valid API key is needed") \
	X(BAD_SIGNATURE, 54, 401, 77, "the delivery is not signed by any of the hook's secrets, or too long ago") \
	X(FORBIDDEN, 6, 403, 77, "this key may not do that") \
	X(REQUESTER_NOT_ALLOWED, 7, 403, 77, "this requester may not fire the step") \
	X(NOT_FOUND, 8, 404, 4, "there is no such thing here") \
	X(METHOD_NOT_ALLOWED, 9, 405, 2, "this method is not for this path") \
	X(REQUEST_TIMEOUT, 10, 408, 75, "the request did not arrive in time") \
	X(WRONG_STATUS, 11, 409, 5, "the subject is not in the status that this needs") \
	X(CLAIM_FAILED, 12, 409, 5, "another operation is already in progress") \
	X(IN_DOUBT, 50, 409, 5, "the outcome of the step's last call is not known, and it had another input") \
	X(ALREADY_EXISTS, 13, 409, 5, "there is one already") \
	X(CONCURRENCY_ERROR, 14, 409, 5, "the subject was changed by somebody else in between") \
	X(ALREADY_COMPLETED, 15, 409, 5, "it has been completed, and cannot be undone this way") \
	X(RESTARTED, 58, 409, 5, "the run was restarted: another one goes on in its place") \
	X(NO_LONGER_MATCHES, 56, 409, 5, "it does not match what was asked for any more") \
	X(SEQ_CONFLICT, 70, 409, 5, "another call was taken after the sequence number that this one names") \
	X(CANCELLED, 71, 409, 5, "the run is being cancelled: nothing new is begun") \
	X(NAME_TAKEN, 72, 409, 5, "a definition of another kind has this name") \
	X(STALE_FENCE, 16, 409, 5, "the claim has passed to another owner") \
	X(ENTRY_LOCKED, 17, 409, 5, "it is being processed, please do not submit it again") \
	X(IN_FLIGHT, 18, 409, 5, "the first request with this key is still in flight, or its outcome is not known") \
	X(HELD, 47, 409, 5, "it is not known whether the first request with this key was done: a person has to decide") \
	X(RESPONSE_NOT_STORED, 19, 409, 5, "it was done, but its answer was not stored") \
	X(RUN_EXPIRED, 20, 410, 4, "the run has ended long ago, and only its key is kept") \
	X(TOO_LARGE, 21, 413, 6, "a limit was exceeded") \
	X(URI_TOO_LONG, 22, 414, 6, "the request line is too long") \
	X(UNSUPPORTED_ENCODING, 23, 415, 2, "the body is encoded in a way that is not read here") \
	X(EXPECTATION_FAILED, 24, 417, 2, "the expectation is not one that can be met") \
	X(INVALID, 25, 422, 2, "the action rejected its input") \
	X(BAD_ENTRY, 73, 422, 2, "the journal does not take this entry") \
	X(STEP_OPEN, 74, 422, 2, "a step is begun: its outcome comes before the end of the turn") \
	X(NOTHING_TO_WAIT_FOR, 75, 422, 2, "there is nothing that this could wait for") \
	X(JOURNAL_FULL, 76, 422, 6, "the journal has no room for this") \
	X(KEY_REUSED, 46, 422, 2, "this key has a run of another workflow") \
	X(CALLER_MISMATCH, 48, 422, 2, "this key was used by another caller") \
	X(FINGERPRINT_MISMATCH, 26, 422, 2, "this key was used with another request") \
	X(CANNOT_MIGRATE, 60, 422, 2, "what the run has done does not fit that version of its definition") \
	X(DEFINITION_INVALID, 27, 422, 1, "a definition or the configuration has errors") \
	X(LIMITED, 77, 429, 75, "a limit of its action is full: nothing was done") \
	X(HEAD_TOO_LARGE, 28, 431, 6, "the header fields are too large") \
	X(NO_MEMORY, 29, 500, 70, "out of memory") \
	X(INTERNAL, 30, 500, 70, "an internal error") \
	X(RECORD_DAMAGED, 49, 500, 70, "the stored answer is not the one that was stored; it was done, and is not done again") \
	X(DATA_ERROR, 31, 500, 70, "the store refused the data of one unit of work") \
	X(PROMISE_BROKEN, 32, 500, 1, "what is in the store breaks a promise") \
	X(SCHEMA_MISMATCH, 33, 500, 78, "the store's schema does not fit this program") \
	X(CONFIG_ERROR, 34, 500, 78, "the configuration is not valid") \
	X(NOT_IMPLEMENTED, 35, 501, 2, "this method or coding is not known here") \
	X(ACTION_FAILED, 36, 502, 7, "the action failed") \
	X(BAD_GATEWAY, 37, 502, 76, "the upstream did not answer in well-formed HTTP") \
	X(UPSTREAM_UNREACHABLE, 38, 502, 76, "the upstream could not be reached; nothing was sent") \
	X(STORE_UNAVAILABLE, 39, 503, 69, "the store cannot be reached") \
	X(SERVER_UNAVAILABLE, 40, 503, 69, "no server can be reached") \
	X(BUSY, 41, 503, 75, "too much work is waiting already") \
	X(STOPPING, 42, 503, 75, "the engine is stopping") \
	X(OUTCOME_UNKNOWN, 43, 504, 8, "it is not known whether this took effect") \
	X(UPSTREAM_TIMEOUT, 44, 504, 76, "the upstream did not answer in time; it is not known what it did") \
	X(VERSION_NOT_SUPPORTED, 45, 505, 2, "only HTTP/1.0 and HTTP/1.1 are spoken here")
/* clang-format on */

/* As large as the greatest number needs. */
union hx_code_span {
#define X(name, number, http, exit_code, text) char HX_##name##_span[(number) + 1];
	HX_CODES(X)
#undef X
};

enum hx_code {
#define X(name, number, http, exit_code, text) HX_##name = (number),
	HX_CODES(X)
#undef X
	/* One more than the greatest that this header knows; one in between may be nobody's. A newer library may return one from there on. */
	HX_CODE_COUNT = sizeof(union hx_code_span)
};

/* What went wrong, in words. `detail` is always terminated; an over-long detail is cut. */
struct hx_error {
	enum hx_code code;
	char detail[240];
};

/* The stable upper-case name of a code, e.g. "CLAIM_FAILED". Never NULL, also for a number out of range. */
const char *hx_code_name(enum hx_code code);
/* One sentence for people; the HTTP status that the API answers with; the exit code of the command line. */
const char *hx_code_text(enum hx_code code);
int hx_code_http_status(enum hx_code code);
int hx_code_exit(enum hx_code code);

/* The version of the library that is running, and as a number (the header's are HX_VERSION and HX_VERSION_NUMBER). */
const char *hx_version(void);
int hx_version_number(void);

/* ---- the gate: one request per key ---- */

#define HX_GATE_KEY_BYTES 32   /* scope and key of a request, hashed */
#define HX_GATE_TOKEN_BYTES 16 /* random: who holds the record */

/* What became of one request, in events, in metrics and (but for the last two) in Idempotency-Status. */
enum hx_gate_outcome {
	HX_GATE_CREATED,     /* executed, and its answer stored */
	HX_GATE_REPLAYED,    /* answered with what was stored */
	HX_GATE_CONFLICT,    /* 409: the first is in flight, its outcome unknown, or its answer was not stored */
	HX_GATE_MISMATCH,    /* 422: the key was used for another request, or by another caller */
	HX_GATE_STALE,       /* executed, but its lease was over and the record is another's by now, or gone */
	HX_GATE_UNSTORED,    /* executed, but the store failed when the answer was to be kept */
	HX_GATE_RELEASED,    /* nothing is kept: the answer is not one to be stored, or nothing was executed */
	HX_GATE_STORE_ERROR, /* 503: the store could not be asked; 500: its answer is damaged. Nothing was executed */
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
	/*
	 * Whose request it is, hashed; kept with the record, and compared with that of whoever comes with the same key
	 * before anything else is. All zero here or in the record (also in one of version 0.1): not compared.
	 */
	unsigned char caller[HX_GATE_KEY_BYTES];
};

enum hx_gate_verdict {
	HX_GATE_ACQUIRED,    /* it is the caller's, under its token */
	HX_GATE_COMPLETED,   /* `response` is what was stored */
	HX_GATE_IN_FLIGHT,   /* somebody has it, for lease_left_ms yet */
	HX_GATE_HELD,        /* its lease is over, and it waits for a person */
	HX_GATE_MISMATCHED,  /* there is one with another fingerprint, whatever its state */
	HX_GATE_OTHER_CALLER /* there is one of another caller, whatever its fingerprint and its state */
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
	size_t size;
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
 *	struct hx_gate_options options = {HX_SIZE(hx_gate_options), .store_url = "sqlite:shop.db"};
 *	struct hx_gate_request request = {HX_SIZE(hx_gate_request), .method = "POST", .path = "/payments", .key = header, …};
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
 * All calls block until the store has answered, and may be made from any thread; an entry belongs to one at a time. The gate's
 * own threads block all signals, and no handler or mask of the program is changed.
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
	size_t size;
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
	size_t size;
	const char *method,
		*path;            /* the path as it was sent, without its query; both NULL: the key counts everywhere */
	const char *tenant;       /* whose key it is; NULL: there are no tenants */
	const char *key;          /* the header's value as it was sent, quoted or not; NULL: there was none */
	const char *content_type; /* JSON is compared by what it says, all else by its bytes; NULL: none */
	const void *body;
	size_t body_bytes;
	/* Who asks, by a name that outlives a token (a user, an account); kept as a hash. The same key from another caller is
	 * HX_CALLER_MISMATCH. NULL: not compared, which is right only where `tenant` tells all callers apart. */
	const char *caller;
};

struct hx_gate_field {
	const char *name, *value;
};

struct hx_gate_response {
	size_t size;
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
 *                                     left of the lease
 *   HX_HELD                           nobody knows, and it waits for a person
 *   HX_CALLER_MISMATCH                the key was used by another caller
 *   HX_FINGERPRINT_MISMATCH           the key was used for another request
 *   HX_RESPONSE_NOT_STORED            it was done, and its body was too large to be kept, or a person has said so
 *   HX_RECORD_DAMAGED                 it was done, and its stored answer cannot be believed any more
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

/*
 * ---- the engine in a program of your own ----
 *
 *	struct hx_native natives[] = {{"charge", charge, &bank}};
 *	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .store = "sqlite:shop.db", .natives = natives, .natives_n = 1};
 *	struct hx_run_request request = {HX_SIZE(hx_run_request), .workflow = "order", .key = "order-7", .input = "{\"cents\":1200}"};
 *
 *	code = hx_engine_open(&options, &engine, &error);               once: what was under way goes on
 *	code = hx_engine_define(engine, "order", json, &error);         or a folder, options.workflows
 *	code = hx_run_start(engine, NULL, &request, &run, &error);      again with the same key: the same run
 *	code = hx_run_wait(engine, NULL, run->id, 30000, &end, &error);
 *	printf("%s %s\n", end->status, end->output);
 *	hx_result_free(run), hx_result_free(end);
 *	hx_engine_close(engine);
 *
 * It is the engine of `hapax serve` without its door: the same store, definitions and promises, and whatever the process
 * dies of, the next one goes on from what was committed.
 * Calls block until the store has answered. They may be made from any thread, several at once, and from native functions
 * (which must not close the engine, and should not wait for runs: they hold one of few threads). The engine's own threads
 * block all signals, and no handler or mask of the program is changed. A child after fork() must not use the engine, nor
 * outlive its parent without exec: it holds the lock of the file. An SQLite file has one engine. A sync of it that fails
 * aborts the process, as in `hapax serve`: what was written before may be gone, and only the next start can tell.
 *
 * Beside what is named at a function, each may return HX_BUSY (too much is waiting), HX_TOO_LARGE, HX_DATA_ERROR and
 * HX_NO_MEMORY; nothing was done then.
 *
 * Texts are UTF-8 with a NUL after them. What goes in stays the caller's and is not needed after the call. What comes
 * out is one struct hx_result, which the caller frees; it is written with HX_OK alone, unless said otherwise, and where it
 * is not wanted the pointer to it may be NULL. So may err, always.
 */
struct hx_engine;

/* ---- native actions: C functions that carry steps out ---- */

/* What a function says is believed. The two that failed, and the rejection, are promises: nothing was done. */
enum hx_native_outcome {
	HX_NATIVE_DONE,            /* output: JSON; none is null */
	HX_NATIVE_FAILED,          /* tried again as `retry` of the step says, with the same key. output: words */
	HX_NATIVE_FAILED_FOR_GOOD, /* trying again is pointless. output: words */
	HX_NATIVE_REJECTED,        /* the input is wrong. output: JSON */
	HX_NATIVE_UNKNOWN          /* it may have been done: `on_unknown` of the step decides. output: words */
};

/* One call of a function. All of it lives until the function returns. */
struct hx_native_call {
	struct hx_engine *engine; /* whose calls get HX_BUSY until hx_engine_open() is about to return */
	const char *input;        /* JSON: the step's `input`; of a step of an entity what it was fired with */
	const char *document;     /* JSON: all that an http action would be sent, the input among it */
	const char *key;          /* of the logical effect: the same in every repetition, also after a crash */
	const char *traceparent;  /* W3C trace context; NULL: none */
	int64_t attempt;          /* from 1 */
	int64_t fence;            /* rises with each holder of the claim; 0: there is none */
	int64_t timeout_ms;       /* how long it may take. Nobody interrupts it: it has to see to that itself */
	const void *inside;       /* the library's */
};

/* Not 0: nobody waits for the result any more (the engine is closed, the claim was lost). For long work to look at. */
int hx_native_cancelled(const struct hx_native_call *call);

/*
 * Where a function puts its output, piece by piece: at most 1 MiB of a step of a run, else 16 MiB. HX_TOO_LARGE: it is more than
 * 16 MiB by now, or there is no memory; nothing of this piece was added, and nothing more will be: what the function says to be done
 * is then an outcome that nobody knows, so it had better find out before.
 */
struct hx_output;
enum hx_code hx_output_add(struct hx_output *output, const char *text);
enum hx_code hx_output_write(struct hx_output *output, const void *bytes, size_t bytes_n);

/* A function and the name by which definitions know it: {"kind": "native", "function": NAME}. */
struct hx_native {
	const char *name; /* 1 to 64 bytes */
	/* In a thread of the engine's, up to native_threads at once. */
	enum hx_native_outcome (*run)(void *context, const struct hx_native_call *call, struct hx_output *output);
	void *context; /* lives until the engine is closed */
};
#define HX_NATIVES_MAX 64

/* ---- opening and closing ---- */

/* Zero means the default. Copied, but for what the functions refer to. */
struct hx_engine_options {
	size_t size;
	/* sqlite:PATH (which this process then has for itself: PATH.lock), sqlite::memory:, postgres://…; NULL:
	 * sqlite:hapax.db */
	const char *store;
	const char *workflows; /* a folder of definitions, *.json; NULL: what the store has, and what is defined */
	const char *config;    /* JSON: modules and their janitors, leases, retention …; NULL: none */
	const char *node;      /* what this node is called in histories; NULL: the host's name */
	const struct hx_native *natives;
	size_t natives_n;
	int log_fd;       /* the engine's log goes there, one line for each event; 0: nowhere */
	int64_t drain_ms; /* how long closing lets what is under way come to its end; 0: 10 seconds */
	/*
	 * Every error and warning about the configuration and the definitions, a line without its end: "order:3: error:
	 * …". In the thread of hx_engine_open() or hx_engine_define(), before it returns; it must not call the engine. NULL:
	 * nobody is told; the first error is in the detail.
	 */
	void (*on_finding)(void *data, const char *line);
	void *data; /* for on_finding and on_log */
	/*
	 * Each event of the engine's log, a JSON object on one line, without its end; instead of log_fd or beside it. In whatever
	 * thread of the engine's it happens, several at once: it must not call the engine, and who is slow here is slow there.
	 */
	void (*on_log)(void *data, const char *line);
	int native_threads; /* so many functions run at once; 0: 4; at most 64 */
};

/*
 * All or nothing: the schema is brought up to date, every definition is checked, also that each function it names is
 * registered, and then what is due goes on at once. HX_CONFIG_ERROR (the detail has the first finding), HX_BUSY (somebody
 * has this SQLite file, in this process or another), HX_STORE_UNAVAILABLE, HX_SCHEMA_MISMATCH …
 */
enum hx_code hx_engine_open(const struct hx_engine_options *options, struct hx_engine **ret_engine,
			    struct hx_error *err);
/*
 * Nothing new is begun, what is under way may end within drain_ms, the rest stays as after a crash: the next to open the store goes
 * on. Calls that wait in other threads return HX_STOPPING; none may be made any more. Returns when every function has. Takes NULL.
 */
void hx_engine_close(struct hx_engine *engine);

/*
 * Puts a definition in force under its name (its member `workflow`), as a new version unless nothing has changed; what runs
 * keeps its own. HX_DEFINITION_INVALID, HX_VALIDATION_ERROR (of another name): nothing has changed; the detail has the first
 * finding. Nothing is known after HX_OUTCOME_UNKNOWN: call again.
 */
enum hx_code hx_engine_define(struct hx_engine *engine, const char *name, const char *json, struct hx_error *err);

/* ---- what calls take and give ---- */

/* On whose behalf; NULL for all of it or a member: "default". A run or an entity of another workspace is HX_NOT_FOUND. */
struct hx_caller {
	size_t size;
	const char *workspace;
	const char *requester;
};

/* All texts live until it is freed. NULL: there is none. */
struct hx_result {
	const char *id;
	const char *status;
	int64_t version;
	int created;        /* not 0: by this call. 0: it was there already (the key's run, the event …) */
	int ended;          /* of a run: not 0: COMPLETED, FAILED or CANCELLED */
	const char *step;   /* of a run: where it stands; NULL: after its last step */
	const char *data;   /* JSON: of a run what its steps have saved so far, of an entity its data */
	const char *output; /* JSON: of a run that has ended; of a step that was fired, what its action put out */
	const char *error;  /* JSON {"code", "message", "step"}: of a run, what has gone wrong and still holds */
};
/* Takes NULL. */
void hx_result_free(struct hx_result *result);

/* ---- runs ---- */

struct hx_run_request {
	size_t size;
	const char *workflow; /* of kind run */
	const char *key;      /* 1 to 255 characters; NULL: none, and every call is another run */
	const char *input;    /* JSON, an object of at most 1 MiB; NULL: {} */
};

/*
 * One run for each key of the workspace, ever, whatever the input: `created` says whether it was this call. With HX_OK it is
 * durable and under way. HX_NOT_FOUND: no such workflow; HX_VALIDATION_ERROR; HX_RUN_EXPIRED: the key's run was deleted by
 * retention. HX_STORE_UNAVAILABLE, HX_OUTCOME_UNKNOWN, HX_BUSY, HX_STOPPING: it may be there; with a key, call again.
 */
enum hx_code hx_run_start(struct hx_engine *engine, const struct hx_caller *caller,
			  const struct hx_run_request *request, struct hx_result **ret_result, struct hx_error *err);
/*
 * The run when it has ended, or as it is after timeout_ms (`ended` tells which). 0: as it is now; below 0: however long it
 * takes. A FAILED run is HX_OK too. HX_NOT_FOUND, HX_RUN_EXPIRED, HX_STOPPING, HX_STORE_UNAVAILABLE.
 */
enum hx_code hx_run_wait(struct hx_engine *engine, const struct hx_caller *caller, const char *id, int64_t timeout_ms,
			 struct hx_result **ret_result, struct hx_error *err);

/* What is done to a run from outside. docs/runs.md says what each of them needs, and leads to. */
enum hx_verb {
	HX_VERB_CANCEL,   /* compensates what was done, in reverse, and ends as CANCELLED */
	HX_VERB_PAUSE,    /* the step under way ends, no other is begun */
	HX_VERB_RESUME,   /* goes on after a pause */
	HX_VERB_RETRY,    /* begins the failed step anew */
	HX_VERB_EVENT,    /* `name` is the event, `data` its data */
	HX_VERB_APPROVE,  /* `name` is the step; by the caller's requester */
	HX_VERB_REJECT,   /* the same */
	HX_VERB_DONE,     /* `name` is a step whose outcome is unknown: it was done, and `data` is its output */
	HX_VERB_NOT_DONE, /* the same: it was not done, and is begun again */
	HX_VERBS
};

struct hx_message {
	size_t size;
	enum hx_verb verb;
	const char *name;
	const char *data;     /* JSON of at most 1 MiB; NULL: null */
	const char *event_id; /* HX_VERB_EVENT: told again with the same id it is one event; NULL: each is another */
	int64_t version;      /* what the run's must be, or HX_CONCURRENCY_ERROR; 0: any. Not for events and outcomes */
};

/*
 * With HX_OK it is durable; `created` of the result is 0 where nothing was left to do (cancelled already, an event of this
 * id was there). HX_NOT_FOUND: no such run, or it has no such event or step; HX_WRONG_STATUS: it is past that, or not there
 * yet; HX_ALREADY_COMPLETED: a cancel that comes too late. The entry_lock of an approval is a door for people who click,
 * and is not taken here: of two decisions one counts all the same.
 */
enum hx_code hx_run_tell(struct hx_engine *engine, const struct hx_caller *caller, const char *id,
			 const struct hx_message *message, struct hx_result **ret_result, struct hx_error *err);

/* ---- entities ---- */

/*
 * A new one, in the first status of its workflow. id NULL: one is made; data: JSON of at most 1 MiB, NULL: {}. HX_NOT_FOUND:
 * no such workflow; HX_ALREADY_EXISTS; HX_METHOD_NOT_ALLOWED: they live in a table of yours.
 */
enum hx_code hx_entity_create(struct hx_engine *engine, const struct hx_caller *caller, const char *workflow,
			      const char *id, const char *data, struct hx_result **ret_result, struct hx_error *err);
/* As it is: HX_NOT_FOUND, or its status, version and data. */
enum hx_code hx_entity_read(struct hx_engine *engine, const struct hx_caller *caller, const char *workflow,
			    const char *id, struct hx_result **ret_result, struct hx_error *err);

struct hx_fire_request {
	size_t size;
	const char *workflow, *id;
	const char *step;  /* its step_key; the entity's status selects among those of one key */
	const char *input; /* JSON; NULL: null */
	int64_t version;   /* what the entity's must be, or HX_CONCURRENCY_ERROR; 0: any */
};

/*
 * Fires a step and returns when it has ended: HX_OK, and the result has the status reached and what the action put out.
 *   HX_CLAIM_FAILED            somebody else is at it: no action ran here
 *   HX_WRONG_STATUS            there is no such step from the status that it is in
 *   HX_REQUESTER_NOT_ALLOWED   the caller's requester may not
 *   HX_ENTRY_LOCKED            the same step is being processed
 *   HX_CONCURRENCY_ERROR       another version, or an unclaimed commit was lost
 *   HX_INVALID                 the action rejected its input: here *ret_result is written too, its output is the rejection
 *   HX_LIMITED                 a limit of its action is full: nothing was done
 *   HX_ACTION_FAILED           the detail has its words; the entity is where it was
 *   HX_OUTCOME_UNKNOWN         it may have been done: on_unknown of the step decides what follows
 *   HX_STOPPING                the engine was closed in the middle: as after a crash, it may have been done
 *   HX_STORE_UNAVAILABLE       no action ran
 */
enum hx_code hx_entity_fire(struct hx_engine *engine, const struct hx_caller *caller,
			    const struct hx_fire_request *request, struct hx_result **ret_result, struct hx_error *err);

struct hx_resolve_request {
	size_t size;
	const char *workflow, *id;
	const char *step;   /* whose outcome is unknown */
	int done;           /* not 0: it was done. 0: it was not, and the entity goes back to where it was */
	const char *output; /* JSON, if it was done; NULL: null */
};

/*
 * A person's word on a step whose outcome is unknown (`on_unknown` hold): the result has the status reached. HX_NOT_FOUND;
 * HX_WRONG_STATUS: no claim is held for a person, or it is of another step; HX_STALE_FENCE: somebody was first;
 * HX_OUTCOME_UNKNOWN: call again.
 */
enum hx_code hx_entity_resolve(struct hx_engine *engine, const struct hx_caller *caller,
			       const struct hx_resolve_request *request, struct hx_result **ret_result,
			       struct hx_error *err);

/* ---- jobs ---- */

/*
 * A parked job (also an after-effect) is due again, with all its attempts. The result has its id and status. HX_NOT_FOUND;
 * HX_WRONG_STATUS: it is not parked, or it is a step of a run, which is to be retried itself; HX_OUTCOME_UNKNOWN.
 */
enum hx_code hx_job_redrive(struct hx_engine *engine, const struct hx_caller *caller, const char *id,
			    struct hx_result **ret_result, struct hx_error *err);

/* ---- everything else: the HTTP API without a socket ---- */

/*
 * Lists, history, why, attention, jobs (push, claim, heartbeat, complete, fail), batches, accounts, definitions and metrics: every
 * call of the API (docs/api-reference.md), with the same bodies, answers and codes, in this process. Whoever has the engine may do
 * everything; the caller says in which workspace, and on whose behalf.
 *
 *	struct hx_call_request request = {HX_SIZE(hx_call_request), "GET", "/api/v1/entities/invoice?held=true"};
 *
 *	code = hx_call(engine, NULL, &request, &answer, &error);
 *	printf("%d %s\n", answer->status, answer->body);
 *	hx_answer_free(answer);
 */
struct hx_call_request {
	size_t size;
	const char *method;       /* "GET", "POST", "PUT" … */
	const char *path;         /* percent-encoded, with its query: "/api/v1/jobs?status=PARKED", "/metrics" */
	const char *body;         /* NULL: none */
	size_t body_bytes;        /* 0: up to the body's NUL. At most 16 MiB */
	const char *content_type; /* NULL: application/json */
	const char *key;          /* Idempotency-Key: the same call again gets the same answer; NULL: none */
};

struct hx_answer {
	int status;       /* of HTTP */
	const char *body; /* JSON, a problem, or text; with a NUL after it */
	size_t body_bytes;
};
/* Takes NULL. */
void hx_answer_free(struct hx_answer *answer);

/*
 * HX_OK: a status below 400. Otherwise the code of the problem, whose words are in err; *ret_answer is written with it, too, or set
 * to NULL where there is none (HX_STOPPING, HX_VALIDATION_ERROR …). Blocks until it is answered.
 */
enum hx_code hx_call(struct hx_engine *engine, const struct hx_caller *caller, const struct hx_call_request *request,
		     struct hx_answer **ret_answer, struct hx_error *err);

/*
 * ---- in somebody's event loop ----
 *
 * The same without waiting: with HX_OK it is under way, and done() is called once, in the thread that calls hx_engine_dispatch(), or
 * in that of hx_engine_close(), where it must not call the engine. The answer is done()'s to free; it is NULL if there was no memory.
 *
 *	hx_call_start(engine, NULL, &request, on_done, order, &error);
 *	poll hx_engine_fd(engine) for reading; when it is readable: hx_engine_dispatch(engine);
 */
enum hx_code hx_call_start(struct hx_engine *engine, const struct hx_caller *caller,
			   const struct hx_call_request *request,
			   void (*done)(void *data, enum hx_code code, struct hx_answer *answer), void *data,
			   struct hx_error *err);
/* Readable while calls have ended whose done() is to be called. The engine's: never read or close it. -1: there is none. */
int hx_engine_fd(struct hx_engine *engine);
/* Calls done() of all calls that have ended, and returns how many. Does not wait. In one thread at a time. */
size_t hx_engine_dispatch(struct hx_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
