/*
 * The engine over HTTP: /api/v1, /metrics, /healthz, /readyz. Routes are declared in api.c; each noun has a file.
 *
 * A handler runs in an event loop and must not wait: it puts what it needs into the exchange's arena, hands a seat
 * to a lane (or, for lists, to a reader) and answers from there. Whoever asks has been admitted by then (auth.h).
 */
#pragma once

#include "base/id.h"
#include "engine/engine.h"
#include "flow/probe.h"
#include "flow/single.h"
#include "serve/problem.h"
#include "serve/router.h"

#define API_PAGE_DEFAULT 50
#define API_PAGE_MAX 500
#define API_TEXT_BYTES_MAX (64u << 20)

struct hooks;
struct changes;
struct vitals;
struct explorer;

struct api {
	struct engine *engine;
	const struct hooks *hooks;     /* NULL: none */
	struct changes *changes;       /* NULL: they are not streamed (api_changes.h) */
	struct vitals *vitals;         /* NULL: nobody keeps them (api_vitals.h) */
	struct explorer *explorer;     /* NULL: definitions are not explored here (api_explore.h) */
	struct test_clock *test_clock; /* NULL: time is not moved (api_test_clock.h) */
	bool loopback;                 /* we listen on loopback alone: while there are no keys, none is needed */
	_Atomic bool ready;
	_Atomic int64_t waiting;  /* clients that wait for the end of a run or a batch */
	_Atomic int64_t claiming; /* workers that wait for a job */
};

/* The context must outlive the router. NULL without memory. */
struct router *api_router_new(struct api *api);
/* The table as it is written, in api_routes.c. */
const struct route *api_routes_written(size_t *ret_n);
/* With those that are made of it (api_run_key.c): what the reference describes, and after them the rest of what is served. */
const struct route *api_routes(size_t *ret_n);
const struct route *api_routes_served(size_t *ret_n);
/* And the one that moves the time of a test. */
const struct route *api_routes_with_clock(size_t *ret_n);

/* ---- for the handlers ---- */

struct api *api_of(const struct http_call *call);
const struct engine_parts *api_parts(const struct http_call *call);
/* From any thread: is it worth waiting for something? No longer when the client has gone, or the server stops. */
bool api_is_awaited(const struct http_call *call);
/* Answers this code with these words, NULL: its own. Always false. */
bool api_refuse(struct http_call *call, enum hx_code code, const char *detail);
/* The same with HX_VALIDATION_ERROR and words that are made here. */
bool api_invalid(struct http_call *call, const char *format, ...) HX_PRINTF(2, 3);
/* Of whoever asks: well-formed names, which live as long as the exchange. */
struct slice api_workspace(const struct http_call *call);
struct slice api_requester(const struct http_call *call);
/* Zeroed memory of the exchange; NULL after answering 503. */
void *api_alloc(struct http_call *call, size_t bytes);
/* The trace that the request is part of, to be kept and continued (base/trace.h); where it has none, or one that is not
 * well-formed, a new one. */
struct slice api_traceparent(const struct http_call *call);
/* 1 to ENTITY_NAME_MAX bytes of UTF-8 without control characters, or false after answering 400. */
bool api_name_checked(struct http_call *call, struct slice name, const char *what);
/*
 * The workflow of this name that whoever asks may see, or NULL. Rows of the user's own table know no workspaces: they are in
 * the one called `default`, and in no other.
 */
const struct entity_machine *api_machine_named(const struct http_call *call, struct slice name);
/* The workflow named in the path, or NULL after answering 404 with the nearest name. */
const struct entity_machine *api_machine(struct http_call *call);
/* Answers 404 for a workflow of this kind ("entity", "run", "batch"; NULL: of any), with the nearest name. */
void api_no_workflow(struct http_call *call, struct slice name, const char *kind);
/* Those words. In the exchange's arena; NULL without memory. */
const char *api_no_workflow_words(struct http_call *call, struct slice name, const char *kind);
/* Is it one of these, which end with NULL? False after answering the code with the nearest. `what`: "status of runs" */
bool api_word_checked(struct http_call *call, struct slice word, const char *const known[], const char *what,
		      enum hx_code code);
/* The body as a JSON object ({} when it is empty), or false after answering 400. Twice the same member is refused. */
bool api_body(struct http_call *call, const char *const known[], struct json *ret_object);
/* A key of the caller's: a string of 1 to 255 characters. False after answering 400. */
bool api_key_checked(struct http_call *call, struct json value, const char *what, struct slice *ret_key);
/* The same, of what the engine also makes by itself: none of the forms that it gives its own (engine/run_start.h). */
bool api_own_key_checked(struct http_call *call, struct json value, const char *what, struct slice *ret_key);
/* Things are counted, not measured: digits alone, also where 5.0 or 5e0 would be the same number. From min to max. */
bool api_is_counted(struct json value, int64_t min, int64_t max, int64_t *ret_number);
/* The member `version`; 0: absent. False after answering 400. */
bool api_version(struct http_call *call, struct json body, int64_t *ret_version);
/* A member that is one of two words. False after answering 400. */
bool api_either(struct http_call *call, struct json body, const char *member, const char *yes, const char *no,
		bool *ret_yes);
/* A member that is a text of 1 to so many bytes; absent or null: as it was. False after answering 400. */
bool api_text(struct http_call *call, struct json body, const char *member, size_t bytes_max, struct slice *text);
/* The member `reason`, for the history; empty: absent. False after answering 400. */
bool api_reason(struct http_call *call, struct json body, struct slice *ret_reason);
/* A member that is true or false; absent: as it was. False after answering 400. */
bool api_bool(struct http_call *call, struct json body, const char *member, bool *value);
/* A member of any kind, as JSON; absent: null. False after answering 413 with these words. */
bool api_member(struct http_call *call, struct json body, const char *member, size_t bytes_max, const char *too_large,
		struct slice *ret_json);
/* A member that is a name, as api_name_checked() has it; words: for one that is no string. */
bool api_name_member(struct http_call *call, struct json body, const char *member, const char *words,
		     struct slice *ret_name);
/* The object has no member but these. False after answering 400. */
bool api_members_known(struct http_call *call, struct json object, const char *const known[]);
/* What an event brings, its member `data`; absent: null. False after answering. */
bool api_event_data(struct http_call *call, struct json body, struct slice *ret_json);
/* The name of a queue that is not the engine's own. False after answering 400. */
bool api_queue_checked(struct http_call *call, struct json value, struct slice *ret_queue);
/* The {id} in the path, which begins with `prefix`; false after answering 404 with these words. */
bool api_id(struct http_call *call, const char *prefix, const char *detail, int64_t *ret_subject);
/* The id of a run, of a batch, of a job in the path; false after answering 404. */
bool api_run_id(struct http_call *call, int64_t *ret_subject);
bool api_batch_id(struct http_call *call, int64_t *ret_subject);
bool api_job_id(struct http_call *call, int64_t *ret_subject);
/* The item of a batch in the path, its {n}; false after answering 404. */
bool api_batch_item(struct http_call *call, int64_t *ret_batch, int64_t *ret_n);
/* A number of the query, from 1 to max; absent: otherwise. False after answering 400. */
bool api_query_number(struct http_call *call, const char *name, int64_t otherwise, int64_t max, int64_t *ret_number);
/* etag_version 0: no ETag. The text stays the caller's. */
void api_respond_json(struct http_call *call, int status, const struct strbuf *text, int64_t etag_version);
/* The same, and the text is released: it must not be in the exchange's arena, which may be gone by then. */
void api_answer(struct http_call *call, int status, struct strbuf *text, int64_t etag_version);

/* The code of an answer of ours, to a call from within. A stored one is replayed without: then its text has it. */
enum hx_code api_code_of(const struct http_answer *answer);

/* What is told of something: when it is done, or before, as a record of the unit that gets it done (api_gate.h). */
struct api_told {
	int status;
	int64_t etag_version; /* 0: no ETag */
	void (*write)(const void *of, struct strbuf *text);
	const void *of;
};
void api_tell(struct http_call *call, const struct api_told *told);

/* An answer in JSON; its text stays the caller's. */
struct api_json {
	struct http_answer answer;
	struct wire_field fields[2];
	char etag[32];
};
/* etag_version 0: no ETag. */
void api_json_init(struct api_json *json, int status, struct slice text, int64_t etag_version);

/* A request that is a task in a lane. What is asked for stands after it, in the same memory, with the task itself. */
struct api_task {
	struct seat seat;
	struct http_call *call;
	struct arena arena; /* of the task: what it reads may be larger than a request may be */
};
/* `bytes` that begin with an api_task, zeroed; `done` ends with api_task_free(). NULL after answering 503. */
void *api_task_new(struct http_call *call, size_t bytes, size_t arena_bytes_max,
		   void (*done)(struct seat *seat, enum hx_code code));
/* The same, without an answer: NULL, there is no memory. */
void *api_task_alloc(struct http_call *call, size_t bytes, size_t arena_bytes_max,
		     void (*done)(struct seat *seat, enum hx_code code));
/* In the lane of this hash. done() may have been called, and the task be gone, when this returns. */
void api_task_start(struct api_task *t, struct task *task, uint64_t hash);
void api_task_free(struct api_task *t);
/* Answers what is told, or the code with these words, NULL: its own; and frees the task. */
void api_task_end(struct api_task *t, enum hx_code code, const char *detail, const struct api_told *told);

/*
 * A request that is one unit: built, answered into `text`, told.
 *
 * One that writes has a `render`, which makes the text out of what is known before the unit runs (the stamp, the fresh
 * id): so the answer can be part of that very unit, as the record of an Idempotency-Key. Its `answered` then says no more
 * than how it went, and does not look at rows.
 */
struct api_query {
	struct seat seat;
	struct single single;
	struct http_call *call;
	struct strbuf text;
	int status;         /* of success; 200 unless set */
	int64_t etag;       /* version for the ETag; 0: none */
	const char *detail; /* of a problem; NULL: the code says it all */
	void (*render)(struct api_query *query);
	/* NULL, or who tells instead: at the end, in a lane's or a reader's thread. See api_query_tell(). */
	void (*ended)(struct api_query *query, enum hx_code code);
	void (*build)(struct api_query *query, struct unit *unit);
	/* Instead of it, for what is read by its workspace and its subject. */
	void (*read)(struct unit *unit, struct slice workspace, int64_t subject);
	enum hx_code (*answered)(struct api_query *query, const struct unit_result *result);
	/* Has its unit carried out by another task, which ends with api_query_end(). False: it is one of its own. NULL: it is, always. */
	bool (*carried)(struct api_query *query);
	/* private */
	uint64_t hash;
	bool lost; /* to a record of the same key */
	/* Whatever the functions need. */
	const struct api_list *list; /* of a page */
	bool sliced;                 /* its page is one of a slice (flow/page.h) */
	const struct entity_machine *machine;
	const void *of; /* the file's own */
	struct slice name, status_wanted, data, attributes, after;
	int64_t subject, number, limit;
	int64_t parent; /* 0: any */
	bool held;
	char id[ID_TEXT_BYTES];
};

/* What is asked has its call, `build` and `answered`, and whatever these need; it is copied, and the call is answered. */
void api_query_ask(const struct api_query *asked, uint64_t hash);
/* The copy, in the exchange's arena; NULL after answering 503. */
struct api_query *api_query_new(const struct api_query *asked);
/* For one that is part of something larger, in memory that lives as long as the exchange. */
void api_query_init(struct api_query *query);
/* In the lane of this hash: writes, and reads of one row by its key. */
void api_query_start(struct api_query *query, uint64_t hash);
/* Of one whose unit is carried: it has ended. */
void api_query_end(struct api_query *query, enum hx_code code);
/* Beside the lanes: lists, whose length must not hold up anybody's commit. The unit only reads. */
void api_query_read(struct api_query *query);
/* Tells the caller of its end: the text, or the code. For `ended`; the exchange and the query may be gone afterwards. */
void api_query_tell(struct api_query *query, enum hx_code code);

/* The parts of entity:WORKFLOW:ID; false: it is something else, and these are the words for what is no subject at all. */
extern const char api_no_subject[];
bool api_entity_split(struct slice subject, struct slice *ret_workflow, struct slice *ret_name);

/* ---- handlers, by noun ---- */

/* Of lists (api_list.h). */
extern const struct api_list api_run_list, api_run_counts, api_job_list, api_account_list, api_account_ledger,
	api_batch_list, api_batch_items, api_schedule_list, api_bulk_items, api_attention;
void api_entity_create(struct http_call *call);
void api_entity_show(struct http_call *call);
void api_entity_list(struct http_call *call);
void api_entity_fire(struct http_call *call);
void api_entity_resolve(struct http_call *call);
void api_entity_probe(struct http_call *call);
void api_entity_data(struct http_call *call);
void api_history(struct http_call *call);
void api_evidence(struct http_call *call);
void api_definition_list(struct http_call *call);
void api_definition_show(struct http_call *call);
void api_definition_graph(struct http_call *call);
void api_definition_put(struct http_call *call);
void api_module_sweep(struct http_call *call);
void api_run_create(struct http_call *call);
void api_run_show(struct http_call *call);
void api_run_why(struct http_call *call);
void api_run_history(struct http_call *call);
void api_run_verb(struct http_call *call);
void api_run_restart(struct http_call *call);
void api_run_migrate(struct http_call *call);
void api_run_event(struct http_call *call);
void api_run_approve(struct http_call *call);
void api_run_resolve(struct http_call *call);
void api_run_probe(struct http_call *call);
/* {"outcome", "output", "detail"}: what a probe says */
void api_write_probed(struct strbuf *text, enum probe_says says, struct slice output);
/* Their own door: a signature in place of an API key. */
bool api_hook_admit(struct http_call *call);
void api_hook(struct http_call *call);
void api_job_push(struct http_call *call);
void api_job_show(struct http_call *call);
void api_job_claim(struct http_call *call);
void api_job_heartbeat(struct http_call *call);
void api_job_complete(struct http_call *call);
void api_job_fail(struct http_call *call);
void api_job_redrive(struct http_call *call);
void api_function_claim(struct http_call *call);
void api_function_journal(struct http_call *call);
void api_function_journals(struct http_call *call);
void api_function_read(struct http_call *call);
void api_account_create(struct http_call *call);
void api_account_show(struct http_call *call);
void api_account_credit(struct http_call *call);
void api_batch_create(struct http_call *call);
void api_batch_show(struct http_call *call);
void api_batch_start(struct http_call *call);
void api_batch_cancel(struct http_call *call);
void api_batch_add_items(struct http_call *call);
void api_batch_accept(struct http_call *call);
void api_batch_resolve(struct http_call *call);
void api_batch_probe(struct http_call *call);
void api_schedule_put(struct http_call *call);
void api_schedule_show(struct http_call *call);
void api_schedule_verb(struct http_call *call);
void api_schedule_trigger(struct http_call *call);
void api_schedule_backfill(struct http_call *call);
void api_bulk_create(struct http_call *call);
void api_bulk_show(struct http_call *call);
void api_bulk_cancel(struct http_call *call);
void api_why(struct http_call *call);
/* What probes and Prometheus read. */
void api_healthz(struct http_call *call);
void api_readyz(struct http_call *call);
void api_metrics(struct http_call *call);
