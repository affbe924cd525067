/*
 * The table of the verbs that ask a server: entities, runs, batches, accounts, jobs, and what is asked of all of them.
 *
 * A row has, in this order: noun, verb, operands, what the help says, method, path ({OPERAND} is that operand), view, and
 * where those operands go that are not in the path; then by name its options, its exit codes, its function. command.h says
 * what each of them is, view.h how a view is written. What all of them have in common stands before them, once.
 *
 * Those with an `ask` of their own are the ones that wait (run.c, batch.c), send a file in pieces (batch.c), or ask for
 * something else than their words say (`entity list --held`).
 */
#include "cli/batch_parts.h"
#include "cli/bulk.h"
#include "cli/entity.h"
#include "cli/evidence.h"
#include "cli/run_parts.h"
#include "cli/verbs.h"
#include "flow/account.h"
#include "flow/attention.h"
#include "flow/batch.h"
#include "flow/batch_item.h"
#include "flow/job.h"
#include "flow/run.h"
#include "model/schedule.h"

/* A row says what it has; the rest is nothing. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* clang-format off */

#define ENTITIES "/api/v1/entities/{WORKFLOW}"
#define RUNS     "/api/v1/workflow-runs"
#define RUN      RUNS "/{RUN}"
#define BATCHES  "/api/v1/batches"
#define ACCOUNTS "/api/v1/accounts"
#define JOBS     "/api/v1/jobs"
#define BULK      "/api/v1/bulk"
#define SCHEDULES "/api/v1/schedules"
#define SCHEDULE  SCHEDULES "/{NAME}"

#define ENTITY_MOVED \
	LINE("{entity/workflow} {entity/id}: {entity/status}, version {entity/version}[\noutput: {output:raw}]")
#define PROBED "the probe says: {outcome}[\noutput: {output:raw}][\n{detail}]"
#define RUN_TEXT "[{definitionId} ]{id}: {status}, version {version}"
#define BATCH_TEXT \
	"{workflow} {id}: {status}, {+total} item[{total=1}|s]" \
	"[{?succeeded+failed+unknown}: [{+succeeded} succeeded][{?failed}[{?succeeded}, ]{failed} failed]" \
	"[{?unknown}[{?succeeded+failed}, ]{unknown} unknown]]" \
	"[{?accepted+cancelled+late}; [{+accepted} accepted][{?cancelled}[{?accepted}, ]{cancelled} cancelled]" \
	"[{?late}[{?accepted+cancelled}, ]{late} late]]" \
	"[{?charged}; {charged} charged, {+refunded} refunded, {charged-refunded} paid]" \
	"[{!created}, started before with this key]"
#define ITEM_TEXT "item {n}: {status}[, {decision}]"
#define ACCOUNT_TEXT "{id}: balance {balance}[{?duplicate}, the credit was there already: nothing was done]"
#define SCHEDULE_TEXT "{name}: [{?paused}paused|{next/0}]"
/* As it was answered at its start, or as it is by now. */
#define BULK_TEXT BULK_TEXT_OF("run")
#define BULK_TEXT_OF(what) BULK_TEXT_OF_THESE(" " what "[{selected=1}|s]")
#define BULK_TEXT_OF_THESE(what) \
	"[{?dryRun}{+selected}" what " would be selected: nothing was done" \
	"|{id}: [{status}, ]{+selected} selected[{?status}: {+done} done, {+unchanged} unchanged, {+refused} refused, {+skipped} skipped" \
	"[{?cancelled}, {cancelled} cancelled]]]"
#define CLAIM_WORDS "{claim/step} by {claim/requester}"
#define HISTORY \
	LIST({"SEQ", "{seq}"}, {"FROM", "{from}"}, {"TO", "{to}"}, {"VERSION", "{version}"}, {"FENCE", "{fence}"}, \
	     {"TIME", "{time}"}, {"NODE", "{node}[ for {worker}]"})

#define OPTION_STATUS(all) \
	OPTION("status", "STATUS", "only those in this status [default: any]", TO(QUERY), .words = all)
#define OPTION_ITEMS(more, ...) \
	OPTION("items", "FILE", \
	       "{\"input\": …, \"cost\": N}, one to a line or all in an array; - is standard input" more, __VA_ARGS__)
SHARED_OPTION(option_version, "version", "N", "only if it still has this version [default: whatever it has]", TO(NUMBER, .min = 1));
#define OPTION_VERSION (&option_version)
SHARED_OPTION(option_reason, "reason", "TEXT", "why, for the history [default: not said]", TO(TEXT));
#define OPTION_REASON (&option_reason)
SHARED_OPTION(option_wait, "wait", "DURATION",
	      "wait for the end, at most so long [default: not at all; without a DURATION: as long as it takes]", .alone = true);
#define OPTION_WAIT (&option_wait)

/* One thing to all that match. */
SHARED_OPTION(option_dry_run, "dry-run", NULL, "only says how many they are", TO(JSON, "dryRun"));
SHARED_OPTION(option_bulk_key, "key", "KEY", "one bulk for this key, however often it is started [default: none]",
	      TO(TEXT, "idempotencyKey"));
#define BULK_OPTIONS_OF(what, condition, more, ...) \
	OPTION("where", "CONDITION", "all " what " of which this is true: '" condition "'" more, \
	       TO(TEXT), __VA_ARGS__), \
		&option_dry_run, &option_bulk_key, OPTION_WAIT
#define BULK_OPTIONS(more, ...) BULK_OPTIONS_OF("runs", "customer == \"c-1\" and status == \"FAILED\"", more, __VA_ARGS__)
#define BULK_NEEDS_OF(what, condition) BULK_OPTIONS_OF(what, condition, "", .needed = true)
#define BULK_NEEDS BULK_OPTIONS("", .needed = true)
#define BULK_KIND(one, other) \
	OPTION("kind", "KIND", "what they are: " one " or " other, TO(TEXT), .fallback = one, \
	       .words = (const char *const[]){one, other, NULL})
#define BULK_EXITS WAIT_EXITS, {HX_KEY_REUSED, "the key has another bulk, or the request is not valid"}

/* What firing and resolving may end with, besides what every verb may. */
#define STEP_EXITS \
	{HX_INVALID, "the action rejected its input"}, \
	{HX_CLAIM_FAILED, "another operation is in progress, or the status or version is another one"}, \
	{HX_ACTION_FAILED, "the action failed"}, \
	{HX_REQUESTER_NOT_ALLOWED, "this requester may not do it"}
#define WAIT_EXITS \
	{HX_ACTION_FAILED, "with --wait: it failed, or was cancelled"}, \
	{HX_WRONG_STATUS, "with --wait: it has not ended within that time, and goes on"}
SHARED_OPTION(option_key, "key", "KEY", "the run's key: RUN is then the name of its workflow [default: none, RUN says it all]");
#define OPTION_KEY (&option_key)
#define RUN_EXPIRED_EXIT {HX_RUN_EXPIRED, "the run has ended long ago, and only its key is kept"}
#define RUN_STATUS_EXIT {HX_WRONG_STATUS, "the run is past it, or its version is another one"}
#define BATCH_STATUS_EXIT {HX_WRONG_STATUS, "the batch, or the item, is past it"}

/* The key of a server is not among them: what stands on a command line can be read by everybody on the machine. */
const struct command_option *const server_options[] = {
	OPTION("server", "URL", "the server to ask, http:// or https://",
	       .env = "HAPAX_SERVER", .fallback = "http://127.0.0.1:7411"),
	OPTION("key-file", "FILE", "a file with an API key, - is standard input [default: the key in HAPAX_KEY]"),
	OPTION("workspace", "NAME", "the workspace that this is about [default: the key's, without a key default]",
	       TO(HEADER, "Hapax-Workspace"), .env = "HAPAX_WORKSPACE"),
	OPTION("requester", "NAME", "on whose behalf [default: the key's, without a key default]",
	       TO(HEADER, "Hapax-Requester"), .env = "HAPAX_REQUESTER"),
	OPTION_TIMEOUT, OPTION_JSON, NULL,
};

const struct command_exit asking_exits[] = {
	{HX_UNAUTHENTICATED, "the server wants an API key, or this one may not do that"},
	{HX_NOT_FOUND, "there is no such thing here"},
	{HX_TOO_LARGE, "it is too large"},
	{HX_OUTCOME_UNKNOWN, "it is not known whether this took effect"},
	{HX_SERVER_UNAVAILABLE, "no server can be reached, or it cannot reach its store; nothing was done"},
	{HX_BUSY, "the server has too much to do, or is stopping; nothing was done"},
	{HX_BAD_GATEWAY, "what answers is no hapax server"},
	{HX_OK, NULL},
};

const struct command verbs_flow[] = {
	/* ---- entities ---- */
	{"entity", "create", "WORKFLOW [ID]",
	 "makes an entity in the first status of its workflow; without ID it gets one",
	 "POST", ENTITIES, LINE("{workflow} {id}: {status}, version {version}"), MEMBERS(TO(TEXT, "id")),
	 .options = OPTIONS(OPTION("data", "JSON", "what the entity carries along [default: {}]", TO(JSON))),
	 .exits = EXITS({HX_ALREADY_EXISTS, "an entity of this id exists already"})},
	{"entity", "show", "WORKFLOW ID", "shows where an entity stands, and who is working on it",
	 "GET", ENTITIES "/{ID}",
	 FIELDS({"workflow", "{workflow}"}, {"id", "{id}"}, {"status", "{status}"}, {"version", "{version}"},
		{"updated", "{updatedAt}"}, {"data", "{data}"},
		{"claim",
		 "[" CLAIM_WORDS "[{?claim/held}, held for a person|, until {claim/until}], fence {claim/fence}|none]"})},
	{"entity", "list", "WORKFLOW", "lists the entities of a workflow, by id; with --held and no WORKFLOW, of all",
	 "GET", ENTITIES,
	 LIST({"ID", "{id}"}, {"STATUS", "{status}"}, {"VERSION", "{version}"}, {"UPDATED", "{updatedAt}"},
	      {"CLAIM", "[" CLAIM_WORDS "[{?claim/held}, held for a person]]"}),
	 .options = OPTIONS(OPTION_STATUS(NULL),
		     OPTION("held", NULL, "only those whose claim is held for a person", TO(QUERY)),
		     SEARCH_OPTIONS, PAGE_OPTIONS),
	 .fewer = true, .ask = entity_ask_list},
	{"entity", "fire", "WORKFLOW ID STEP", "fires a step, and answers when it is done",
	 "POST", ENTITIES "/{ID}/steps/{STEP}", ENTITY_MOVED,
	 .options = OPTIONS(OPTION("input", "JSON", "the input of the action [default: null]", TO(JSON)), OPTION_VERSION),
	 .exits = EXITS(STEP_EXITS)},
	{"entity", "resolve", "WORKFLOW ID STEP done|not_done",
	 "says what became of a step whose claim is held for a person",
	 "POST", ENTITIES "/{ID}/steps/{STEP}/resolve", ENTITY_MOVED, MEMBERS(TO(WORD, "outcome")),
	 .options = OPTIONS(OPTION("output", "JSON", "with done: what the action would have given back [default: null]",
			    TO(JSON)), OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS(STEP_EXITS)},
	{"entity", "probe", "WORKFLOW ID STEP", "asks the probe of a step whose claim is held; nothing is changed",
	 "POST", ENTITIES "/{ID}/steps/{STEP}/probe", LINE(PROBED), .exits = EXITS({HX_WRONG_STATUS, "nothing of it is held, or it has no probe"})},
	{"entity", "data", "WORKFLOW ID JSON", "merges an object into an entity's data; null takes a member away",
	 "POST", ENTITIES "/{ID}/data", LINE("{workflow} {id}: {status}, version {version}"), MEMBERS(TO(JSON, "data")),
	 .options = OPTIONS(OPTION("version", "N", "the version that was seen", TO(NUMBER, .min = 1), .needed = true)),
	 .exits = EXITS({HX_CLAIM_FAILED, "a step has claimed it, its last call is in doubt, or the version is another one"})},
	{"entity", "history", "WORKFLOW ID", "tells every change of an entity's status",
	 "GET", "/api/v1/history/entity%3A{WORKFLOW}%3A{ID}", HISTORY,
	 .options = OPTIONS(PAGE_OPTIONS)},

	/* ---- runs. Without a key every start begins one; whoever may have to call again gives one ---- */
	{"run", "start", "WORKFLOW", "starts a run, or finds the one that this key has started",
	 "POST", RUNS,
	 LINE("{run/definitionId} {run/id}: {run/status}, version {run/version}"
	      "[{!created}, started before with this key[{?inputDiffers}, and with another input]]"
	      "[\noutput: {run/output:raw}]"),
	 MEMBERS(TO(TEXT, "definitionId")),
	 .options = OPTIONS(OPTION("input", "JSON",
			    "the input of the run, an object; @FILE or - (standard input) has it [default: {}]",
			    TO(JSON)),
		     OPTION("key", "KEY", "one run for this key, however often it is started [default: none]",
			    TO(TEXT, "idempotencyKey")),
		     OPTION_WAIT),
	 .exits = EXITS(WAIT_EXITS, RUN_EXPIRED_EXIT), .ask = run_ask_start},
	{"run", "show", "RUN", "shows where a run stands, step by step",
	 "GET", RUN, PRINTED_BY(run_print_picture),
	 .options = OPTIONS(OPTION_KEY, OPTION_WAIT),
	 .exits = EXITS(WAIT_EXITS, RUN_EXPIRED_EXIT), .ask = run_ask_show},
	{"run", "list", NULL, "lists runs, the newest first",
	 "GET", RUNS,
	 LIST({"ID", "{id}"}, {"WORKFLOW", "{definitionId}"}, {"STATUS", "{status}"}, {"VERSION", "{version}"},
	      {"STEP", "{currentStep}"}, {"CREATED", "{createdAt}"}, {"KEY", "{idempotencyKey}"}),
	 .options = OPTIONS(OPTION_STATUS(run_statuses),
		     OPTION("workflow", "NAME", "only those of this workflow [default: any]", TO(QUERY, "definitionId"),
			    .workflows = "run"),
		     OPTION("unknown", NULL, "only those with a step whose outcome is unknown, held for a person",
			    TO(QUERY)),
		     OPTION("parent", "ID", "only the children of this run [default: any]", TO(QUERY)),
		     SEARCH_OPTIONS, PAGE_OPTIONS)},
	{"run", "counts", NULL, "counts the runs of each workflow, by status",
	 "GET", "/api/v1/run-counts",
	 LIST({"WORKFLOW", "{definitionId}"}, {"PENDING", "{counts/PENDING}"}, {"RUNNING", "{counts/RUNNING}"},
	      {"WAITING", "{counts/WAITING}"}, {"PAUSED", "{counts/PAUSED}"}, {"COMPLETED", "{counts/COMPLETED}"},
	      {"FAILED", "{counts/FAILED}"}, {"CANCELLING", "{counts/CANCELLING}"}, {"CANCELLED", "{counts/CANCELLED}"}),
	 .options = OPTIONS(OPTION("workflow", "NAME", "only those of this workflow [default: any]", TO(QUERY, "definitionId"),
			    .workflows = "run"),
		     PAGE_OPTIONS)},
	{"run", "history", "RUN", "tells every change of a run's status",
	 "GET", RUN "/history", HISTORY,
	 .options = OPTIONS(OPTION_KEY, PAGE_OPTIONS)},
	{"run", "cancel", "RUN", "stops a run, and undoes in reverse order what its steps have done",
	 "POST", RUN "/cancel", LINE(RUN_TEXT),
	 .options = OPTIONS(OPTION_KEY, OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS({HX_ALREADY_COMPLETED, "it is completed, or its version is another one"})},
	{"run", "retry", "RUN", "goes on from the step that failed, with all its attempts",
	 "POST", RUN "/retry", LINE(RUN_TEXT),
	 .options = OPTIONS(OPTION_KEY, OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "restart", "RUN", "starts a new run in the place of one that has ended, from a step on",
	 "POST", RUN "/restart", LINE("run {id}: {status}, in the place of {restartOf}"),
	 .options = OPTIONS(OPTION_KEY, OPTION("from", "STEP", "the step that it begins with: one that the run has come to", TO(TEXT), .needed = true),
		     OPTION("input", "JSON", "of the new run, an object; @FILE or - has it [default: as it was]", TO(JSON))),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "migrate", "RUN", "lets a run go on with another version of its definition",
	 "POST", RUN "/migrate", LINE("run {id}: {status}, version {version}[, definition {definitionVersion}][, function version {functionVersion}][{?dryRun}, a dry run: nothing was changed]"),
	 .options = OPTIONS(OPTION_KEY, OPTION("to", "N", "the version of its definition that it is to have; needed, but for a function", TO(NUMBER, "definitionVersion", .min = 1)),
		     OPTION("to-code", "VERSION", "needed for a function, in its place: the version whose workers are to go on with it", TO(TEXT, "functionVersion")),
		     OPTION("rename", "OLD=NEW", "steps that have another name there, with commas between several [default: none]", TO(NAMES, "steps")),
		     OPTION("dry-run", NULL, "only says whether it could be done", TO(JSON, "dryRun")), OPTION_VERSION),
	 .exits = EXITS({HX_CANNOT_MIGRATE, "its steps do not fit that version, or the request is not valid"}, RUN_STATUS_EXIT)},
	{"run", "pause", "RUN", "lets the step under way end, and begins no other",
	 "POST", RUN "/pause", LINE(RUN_TEXT),
	 .options = OPTIONS(OPTION_KEY, OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "resume", "RUN", "lets a paused run go on",
	 "POST", RUN "/resume", LINE(RUN_TEXT),
	 .options = OPTIONS(OPTION_KEY, OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "signal", "RUN EVENT", "sends a run the event that a step of it waits for, or will wait for",
	 "POST", RUN "/events/{EVENT}", LINE(RUN_TEXT "[{?duplicate}, the event was there already: nothing was done]"),
	 .options = OPTIONS(OPTION_KEY, OPTION("id", "ID", "of the event: the same one again changes nothing [default: a fresh one]",
			    TO(TEXT)),
		     OPTION("data", "JSON", "of the event; @FILE or - (standard input) has it [default: null]",
			    TO(JSON))),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "approve", "RUN STEP", "decides the approval that a run waits for",
	 "POST", RUN "/approvals/{STEP}", LINE(RUN_TEXT),
	 .options = OPTIONS(OPTION_KEY, OPTION("reject", NULL, "say no: the run fails",
			    TO(TEXT, "decision", .given = "reject", .otherwise = "approve")),
		     OPTION("by", "NAME", "who decides [default: the requester]", TO(TEXT)),
		     OPTION("comment", "TEXT", "why [default: none]", TO(TEXT)),
		     OPTION_VERSION),
	 .exits = EXITS(RUN_STATUS_EXIT)},
	{"run", "resolve", "RUN STEP done|not_done", "says what became of a step whose outcome is unknown",
	 "POST", RUN "/steps/{STEP}/resolve", LINE(RUN_TEXT), MEMBERS(TO(WORD, "outcome")),
	 .options = OPTIONS(OPTION_KEY, OPTION("output", "JSON",
			    "with done: what the step would have given back; @FILE or - has it [default: null]",
			    TO(JSON)), OPTION_VERSION, OPTION_REASON),
	 .exits = EXITS(RUN_STATUS_EXIT)},

	{"run", "probe", "RUN STEP", "asks the probe of a step whose outcome is unknown; nothing is changed",
	 "POST", RUN "/steps/{STEP}/probe", LINE(PROBED), .exits = EXITS(RUN_STATUS_EXIT)},

	/* ---- batches ---- */
	{"batch", "start", "WORKFLOW | ID",
	 "starts a batch of items, or finds the one of this key; or starts one that is held",
	 "POST", BATCHES, LINE(BATCH_TEXT),
	 .options = OPTIONS(OPTION("account", "ACCOUNT", "who pays for the items; needed with a WORKFLOW"),
		     OPTION_ITEMS("; needed with a WORKFLOW", .needed = false),
		     OPTION("key", "KEY", "one batch for this key, however often it is started [default: none]"),
		     OPTION("data", "JSON", "an object: what it is about, for its items and for searches; @FILE or - has it [default: {}]"),
		     OPTION("hold", NULL,
			    "do not start it yet: hapax batch add adds to it, hapax batch start ID starts it"),
		     OPTION_WAIT),
	 .exits = EXITS(WAIT_EXITS, {HX_ALREADY_EXISTS, "it cannot be started any more"}), .ask = batch_ask_start},
	{"batch", "add", "ID", "adds items to a batch that is held",
	 "POST", BATCHES "/{ID}/items", LINE(BATCH_TEXT),
	 .options = OPTIONS(OPTION_ITEMS("", .needed = true),
		     OPTION("key", "KEY", "adds them once, however often this is called within a day [default: none]")),
	 .exits = EXITS(BATCH_STATUS_EXIT), .ask = batch_ask_add},
	{"batch", "show", "ID", "shows how far a batch is, and what it has cost",
	 "GET", BATCHES "/{ID}", PRINTED_BY(batch_print_picture),
	 .options = OPTIONS(OPTION("items", NULL, "below it its items, the first 50"), OPTION_WAIT),
	 .exits = EXITS(WAIT_EXITS), .ask = batch_ask_show},
	{"batch", "list", NULL, "lists batches, the newest first",
	 "GET", BATCHES,
	 LIST({"ID", "{id}"}, {"WORKFLOW", "{workflow}"}, {"ACCOUNT", "{account}"}, {"STATUS", "{status}"},
	      {"DONE", "{succeeded+failed+unknown}/{+total}"}, {"PAID", "{charged-refunded}"},
	      {"CREATED", "{createdAt}"}, {"KEY", "{idempotencyKey}"}),
	 .options = OPTIONS(OPTION_STATUS(batch_statuses),
		     OPTION("workflow", "NAME", "only those of this workflow [default: any]", TO(QUERY),
			    .workflows = "batch"),
		     SEARCH_OPTIONS, PAGE_OPTIONS)},
	{"batch", "items", "ID", "lists the items of a batch",
	 "GET", BATCHES "/{ID}/items", &batch_items_view,
	 .options = OPTIONS(OPTION_STATUS(item_statuses),
		     OPTION("decision", "DECISION", "only those of which this was decided [default: whatever was]",
			    TO(QUERY), .words = item_decisions),
		     PAGE_OPTIONS)},
	{"batch", "cancel", "ID",
	 "stops a batch, deletes what its undecided items have made, and refunds what they were charged",
	 "POST", BATCHES "/{ID}/cancel",
	 /* of one that runs it is only noted: whoever works on it sees that at the next item */
	 LINE("[{status=ACCEPTED}{id}: accepted, and torn down at the next item; "
	      "hapax batch cancel {id} --wait waits for it"
	      "|{status=CANCELLED}{id}: torn down, {+cancelled} of {+total} items cancelled, {+refunded} refunded"
	      "|" BATCH_TEXT "]"),
	 .options = OPTIONS(OPTION_WAIT),
	 .exits = EXITS({HX_ALREADY_COMPLETED, "it is completed; with --wait: it is not CANCELLED within that time"}),
	 .ask = batch_ask_cancel},
	{"batch", "accept", "ID N", "accepts what an item has made: a cancel leaves it alone",
	 "POST", BATCHES "/{ID}/items/{N}/accept", LINE(ITEM_TEXT),
	 .exits = EXITS(BATCH_STATUS_EXIT)},
	{"batch", "probe", "ID N", "asks the probe of an item whose outcome is unknown; nothing is changed",
	 "POST", BATCHES "/{ID}/items/{N}/probe", LINE(PROBED), .exits = EXITS(BATCH_STATUS_EXIT)},
	{"batch", "resolve", "ID N done|not_done", "says what became of an item whose outcome is unknown",
	 "POST", BATCHES "/{ID}/items/{N}/resolve", LINE(ITEM_TEXT), MEMBERS(TO(WORD, "outcome")),
	 .options = OPTIONS(OPTION("output", "JSON",
			    "with done: what the item would have given back; @FILE or - has it [default: null]",
			    TO(JSON))),
	 .exits = EXITS(BATCH_STATUS_EXIT)},

	/* ---- accounts ---- */
	{"account", "create", "ID", "opens an account, with what it begins with",
	 "POST", ACCOUNTS, LINE(ACCOUNT_TEXT), MEMBERS(TO(TEXT, "id")),
	 .options = OPTIONS(OPTION("balance", "N", "what it begins with, a whole number of the smallest unit",
			    TO(MONEY, .max = ACCOUNT_AMOUNT_MAX), .fallback = "0")),
	 .exits = EXITS({HX_ALREADY_EXISTS, "there is an account of this id"})},
	{"account", "show", "ID", "shows what an account has",
	 "GET", ACCOUNTS "/{ID}", FIELDS({"account", "{id}"}, {"balance", "{balance}"}, {"created", "{createdAt}"})},
	{"account", "list", NULL, "lists accounts, by id",
	 "GET", ACCOUNTS, LIST({"ID", "{id}"}, {"BALANCE", "{balance}"}, {"CREATED", "{createdAt}"}),
	 .options = OPTIONS(PAGE_OPTIONS)},
	{"account", "credit", "ID AMOUNT", "puts money on an account, once for each key",
	 "POST", ACCOUNTS "/{ID}/credit", LINE(ACCOUNT_TEXT), MEMBERS(TO(MONEY, "amount", 1, ACCOUNT_AMOUNT_MAX)),
	 .options = OPTIONS(OPTION("key", "KEY", "names this credit: the same key and amount again has no effect",
			    TO(TEXT), .needed = true)),
	 .exits = EXITS({HX_ALREADY_EXISTS, "this key has credited another amount"})},
	{"account", "ledger", "ID", "lists what made the balance of an account, the oldest first",
	 "GET", ACCOUNTS "/{ID}/ledger", /* the key is last: it is the one that may be long */
	 CUT_LIST({"SEQ", "{seq}"}, {"TIME", "{time}"}, {"REASON", "{reason}"}, {"AMOUNT", "{amount}"},
		  {"BALANCE", "{balance}"}, {"KEY", "{key}"}),
	 .options = OPTIONS(PAGE_OPTIONS)},

	/* ---- jobs: work that somebody pulls ---- */
	{"job", "push", "QUEUE", "pushes a job for the workers of a queue, or finds the one that this key has pushed",
	 "POST", JOBS, LINE("{jobs/0/id}[{!jobs/0/created}, pushed before with this key]"), MEMBERS(TO(TEXT, "queue")),
	 .options = OPTIONS(OPTION("payload", "JSON",
			    "what the worker gets; @FILE or - (standard input) has it [default: null]", TO(JSON)),
		     OPTION("key", "KEY",
			    "one job for this key in its queue, however often it is pushed [default: none]", TO(TEXT)),
		     OPTION("run-at", "TIME", "not before: a time (RFC 3339), or a duration from now on [default: now]",
			    TO(TIME, "runAt")),
		     OPTION("priority", "N", "-1000 to 1000, the highest first [default: 0]",
			    TO(NUMBER, .min = -1000, .max = 1000)))},
	{"job", "list", NULL, "lists jobs, those of runs and after-effects among them, the oldest first",
	 "GET", JOBS, /* what made it, and of one that was pushed its key */
	 CUT_LIST({"ID", "{id}"}, {"STATUS", "{status}"}, {"QUEUE", "{queue}"}, {"ATTEMPT", "{attempt}"},
		  {"ABOUT", "[{action} of {workflow} {payload/id}|{key}]"}, {"ERROR", "{error}"}),
	 .options = OPTIONS(OPTION_STATUS(job_statuses),
		     OPTION("queue", "QUEUE", "only those of this queue [default: any]", TO(QUERY)),
		     PAGE_OPTIONS)},
	{"job", "show", "ID", "shows a job, and who is working on it",
	 "GET", JOBS "/{ID}", WHOLE},
	{"job", "redrive", "ID", "gives a parked job another try, with the same key",
	 "POST", JOBS "/{ID}/redrive", LINE("{id}: {status}"),
	 .exits = EXITS({HX_WRONG_STATUS, "it is not parked, or it is a step of a run"})},

	/* ---- schedules ---- */
	{"schedule", "put", "NAME", "makes a schedule, or changes what it says; all of it is said anew",
	 "PUT", SCHEDULE, LINE("{name}: [{?paused}paused|next at {next/0}]"),
	 .options = OPTIONS(OPTION("workflow", "NAME", "what a slot starts, a run; or --batch [default: none]", TO(TEXT)),
		     OPTION("input", "JSON", "of the run, an object; @FILE or - (standard input) has it [default: {}]", TO(JSON)),
		     OPTION("batch", "JSON", "what a slot starts: {\"workflow\", \"account\", \"data\", \"items\"} [default: none]", TO(JSON)),
		     OPTION("fire", "JSON", "a step that a slot fires: {\"workflow\", \"id\", \"step\"} [default: none]", TO(JSON)),
		     OPTION("cron", "FIELDS", "minute hour day-of-month month day-of-week, in one word; or --every [default: none]", TO(TEXT)),
		     OPTION("every", "DURATION", "whole seconds; or --cron [default: none]", TO(TEXT)),
		     OPTION("timezone", "NAME", "of the system's tzdata, for --cron [default: UTC]", TO(TEXT)),
		     OPTION("overlap", "WORD", "while what was started before is open: skip, queue, cancel or allow [default: skip]",
			    TO(TEXT), .words = schedule_overlaps),
		     OPTION("catch-up", "WORD", "slots that nobody was there for: none, last, all, or all within a DURATION [default: 24h]",
			    TO(TEXT, "catchUp")),
		     OPTION("jitter", "DURATION", "starts are later by up to this, by a hash of their slot [default: none]", TO(TEXT)),
		     OPTION("from", "TIME", "no slot before it [default: any]", TO(TEXT)),
		     OPTION("to", "TIME", "no slot after it [default: any]", TO(TEXT)))},
	{"schedule", "show", "NAME", "shows a schedule, its next ten slots among it",
	 "GET", SCHEDULE, WHOLE},
	{"schedule", "list", NULL, "lists schedules, by name",
	 "GET", SCHEDULES,
	 LIST({"NAME", "{name}"}, {"STARTS", "[{workflow}|{batch/workflow}|{fire/workflow}]"}, {"WHEN", "[{cron}|{every}]"},
	      {"TIMEZONE", "{timezone}"}, {"NEXT", "[{?paused}paused|{next/0}]"}, {"LAST", "{last/slot}"}),
	 .options = OPTIONS(PAGE_OPTIONS)},
	{"schedule", "trigger", "NAME", "starts it now, beside its slots",
	 "POST", SCHEDULE "/trigger",
	 LINE("[{run/definitionId} {run/id}|{batch/workflow} {batch/id}|{job/workflow} {job/id}][{!created}, triggered before with this id]"),
	 .options = OPTIONS(OPTION("id", "ID", "of the trigger: the same one again starts nothing [default: a fresh one]", TO(TEXT)))},
	{"schedule", "pause", "NAME", "starts no further slot",
	 "POST", SCHEDULE "/pause", LINE(SCHEDULE_TEXT)},
	{"schedule", "resume", "NAME", "goes on with the slot that comes next; those of the pause are gone",
	 "POST", SCHEDULE "/resume", LINE(SCHEDULE_TEXT)},
	{"schedule", "backfill", "NAME", "starts the slots of a range that was, each once",
	 "POST", SCHEDULE "/backfill", LINE("{name}: {+slots} slot[{slots=1}|s]"),
	 .options = OPTIONS(OPTION("from", "TIME", "the range begins with it", TO(TEXT), .needed = true),
		     OPTION("to", "TIME", "and ends with it", TO(TEXT), .needed = true))},
	{"schedule", "delete", "NAME", "deletes a schedule; what it has started goes on",
	 "DELETE", SCHEDULE, LINE("{name}: deleted")},

	/* ---- bulks: their verbs are those of runs, batches, entities and jobs ---- */
	{"bulk", "cancel", "[ID]", "cancels all runs, or batches, that match; or ends a bulk, by its ID",
	 "POST", BULK, LINE(BULK_TEXT_OF_THESE("")),
	 .options = OPTIONS(BULK_OPTIONS("; needed without an ID", .needed = false), BULK_KIND("run", "batch"), OPTION_REASON),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_cancel},
	{"bulk", "retry", NULL, "lets all failed runs that match go on",
	 "POST", BULK, LINE(BULK_TEXT),
	 .options = OPTIONS(BULK_NEEDS, OPTION_REASON),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "resume", NULL, "lets all paused runs that match go on",
	 "POST", BULK, LINE(BULK_TEXT),
	 .options = OPTIONS(BULK_NEEDS, OPTION_REASON),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "start", NULL, "starts all held batches that match",
	 "POST", BULK, LINE(BULK_TEXT_OF_THESE(" batch[{selected=1}|es]")),
	 .options = OPTIONS(BULK_NEEDS_OF("batches", "workflow == \"render\" and status == \"PENDING\"")),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "resolve", "STEP done|not_done", "says of all runs, or entities, that match what became of this step",
	 "POST", BULK, LINE(BULK_TEXT_OF_THESE("")), MEMBERS(TO(TEXT, "step"), TO(WORD, "outcome")),
	 .options = OPTIONS(BULK_NEEDS, BULK_KIND("run", "entity"), OPTION("output", "JSON",
			    "with done: what the step would have given back; @FILE or - has it [default: null]",
			    TO(JSON)), OPTION_REASON),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "signal", "EVENT", "sends an event to all runs that match, once to each",
	 "POST", BULK, LINE(BULK_TEXT), MEMBERS(TO(TEXT, "event")),
	 .options = OPTIONS(BULK_NEEDS, OPTION("data", "JSON", "of the event; @FILE or - (standard input) has it [default: null]",
			    TO(JSON))),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "migrate", NULL, "lets all runs that match go on with another version of their definition",
	 "POST", BULK, LINE(BULK_TEXT),
	 .options = OPTIONS(BULK_NEEDS,
		     OPTION("to", "N", "the version of their definition that they are to have", TO(NUMBER, "definitionVersion", .min = 1), .needed = true),
		     OPTION("rename", "OLD=NEW", "steps that have another name there, with commas between several [default: none]", TO(NAMES, "steps"))),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "redrive", NULL, "gives all parked jobs that match another try",
	 "POST", BULK, LINE(BULK_TEXT_OF("job")),
	 .options = OPTIONS(BULK_NEEDS_OF("jobs", "status == \"PARKED\" and queue == \"mail\"")),
	 .exits = EXITS(BULK_EXITS), .ask = bulk_ask_start},
	{"bulk", "show", "ID", "shows how far a bulk is, or waits for its end",
	 "GET", BULK "/{ID}", PRINTED_BY(bulk_print_picture),
	 .options = OPTIONS(OPTION_WAIT),
	 .exits = EXITS(WAIT_EXITS), .ask = bulk_ask_show},
	{"bulk", "items", "ID", "lists what a bulk has selected, with what has come of each",
	 "GET", BULK "/{ID}/items",
	 LIST({"SUBJECT", "{subject}"}, {"RESULT", "[{result}|open]"}, {"CODE", "{code}"}),
	 .options = OPTIONS(PAGE_OPTIONS)},

	/* ---- of all of them ---- */
	{"why", NULL, "ID", "says what a run, a batch, a job or an entity (entity:WORKFLOW:ID) is waiting for",
	 "GET", "/api/v1/why/{ID}", LINE("{id} is {status}: {why}")},
	{"evidence", NULL, "SUBJECT",
	 "gives all of a subject's history, with its ledger and hashes, as a file that hapax audit --bundle checks",
	 "GET", "/api/v1/evidence/{SUBJECT}", PRINTED_BY(evidence_print),
	 .options = OPTIONS(OPTION("output", "FILE", "where it goes; -: standard output", .letter = 'o', .fallback = "-")),
	 .exits = EXITS({HX_INTERNAL, "FILE cannot be written"}),
	 .ask = evidence_ask},
	{"attention", NULL, NULL, "lists all that waits for a person, the oldest first",
	 "GET", "/api/v1/attention",
	 LIST({"SINCE", "{since}"}, {"KIND", "{kind}"}, {"ID", "{id}"}, {"WORKFLOW", "{workflow}"}, {"STEP", "{step}"},
	      {"DETAIL", "{detail}"}),
	 .options = OPTIONS(OPTION("kind", "KIND", "only those of this kind, such as failed_run [default: any]", TO(QUERY),
			    .words = attention_kinds),
		     OPTION("order", "ORDER", "age, or money: the most first [default: age]", TO(QUERY)),
		     PAGE_OPTIONS)},
	{0},
};
