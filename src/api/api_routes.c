/*
 * The table of routes: what there is, who may, and what it takes and answers. Requests are dispatched by it, keys are
 * measured by it, query parameters that it does not name are refused, and openapi.c describes the API by it.
 *
 * `one_unit`: the handler is one api_query with a `render`, so that its Idempotency-Key needs no acquisition before.
 * What can be done to a run by its id can be done by its key: those routes are made of these (api_run_key.c). Schemas are
 * those of openapi.json. `errors` are a route's own; those that any may answer are added there.
 */
#include "api/api.h"
#include "api/openapi.h"

/* clang-format off */

#define PAGE {"limit", "PageSize"}, {"cursor", "Cursor"}

static const struct route routes[] = {
	{"POST", "/api/v1/entities/{workflow}", api_entity_create, ROUTE_EXECUTE, "Creates an entity.",
	 .one_unit = true, .id = "createEntity", .body = "EntityCreate", .answers = {{201, "Entity"}}, .etag = true,
	 .errors = {HX_METHOD_NOT_ALLOWED, HX_ALREADY_EXISTS}},
	{"GET", "/api/v1/entities/{workflow}", api_entity_list, ROUTE_READ, "Lists entities, by status.",
	 .id = "listEntities", .query = {{"status", "EntityStatus"}, {"held", "Held"}, PAGE},
	 .answers = {{200, "EntityPage"}}},
	{"GET", "/api/v1/entities/{workflow}/{id}", api_entity_show, ROUTE_READ, "Shows an entity.",
	 .id = "getEntity", .answers = {{200, "Entity"}}, .etag = true},
	{"POST", "/api/v1/entities/{workflow}/{id}/steps/{step}", api_entity_fire, ROUTE_EXECUTE, "Fires a step.",
	 .id = "fireStep", .body = "StepFire", .answers = {{200, "Fired"}}, .etag = true,
	 .errors = {HX_REQUESTER_NOT_ALLOWED, HX_CLAIM_FAILED, HX_IN_DOUBT, HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_ENTRY_LOCKED,
		    HX_INVALID, HX_ACTION_FAILED, HX_OUTCOME_UNKNOWN, HX_NOT_IMPLEMENTED}},
	{"POST", "/api/v1/entities/{workflow}/{id}/steps/{step}/resolve", api_entity_resolve, ROUTE_EXECUTE,
	 "Says what became of a claim that is held for a person.",
	 .id = "resolveClaim", .body = "Resolution", .answers = {{200, "Fired"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_STALE_FENCE, HX_INVALID, HX_ACTION_FAILED}},
	{"POST", "/api/v1/entities/{workflow}/{id}/data", api_entity_data, ROUTE_EXECUTE, "Changes an entity's data.",
	 .id = "changeData", .body = "DataChange", .answers = {{200, "Entity"}}, .etag = true,
	 .errors = {HX_METHOD_NOT_ALLOWED, HX_CLAIM_FAILED, HX_IN_DOUBT, HX_CONCURRENCY_ERROR, HX_OUTCOME_UNKNOWN}},

	{"GET", "/api/v1/history/{subject}", api_history, ROUTE_READ, "Tells the history of a subject.",
	 .id = "getHistory", .query = {PAGE}, .answers = {{200, "HistoryPage"}}, .errors = {HX_RUN_EXPIRED}},
	{"GET", "/api/v1/why/{id}", api_why, ROUTE_READ, "Says what a subject is waiting for.",
	 .id = "getWhy", .answers = {{200, "Explanation"}}, .errors = {HX_RUN_EXPIRED}},

	{"GET", "/api/v1/attention", api_attention, ROUTE_READ, "Lists all that waits for a person, the oldest first.",
	 .id = "listAttention", .query = {{"kind", "AttentionKind"}, PAGE}, .answers = {{200, "AttentionPage"}}},

	{"GET", "/api/v1/definitions", api_definition_list, ROUTE_READ, "Lists the workflows in force.",
	 .id = "listDefinitions", .answers = {{200, "DefinitionPage"}}},
	{"GET", "/api/v1/definitions/{name}", api_definition_show, ROUTE_ADMIN, "Shows a workflow, in any of its versions.",
	 .id = "getDefinition", .query = {{"version", "DefinitionNumber"}}, .answers = {{200, "DefinitionVersion"}},
	 .etag = true},
	{"PUT", "/api/v1/definitions/{name}", api_definition_put, ROUTE_ADMIN, "Puts a new version of a workflow.",
	 .id = "putDefinition", .body = "DefinitionText", .answers = {{200, "DefinitionTaken"}}, .etag = true,
	 .errors = {HX_DEFINITION_INVALID, HX_CONCURRENCY_ERROR}},
	{"POST", "/api/v1/modules/{module}/sweep", api_module_sweep, ROUTE_ADMIN, "Sweeps the claims of a module.",
	 .id = "sweepModule", .answers = {{200, "Swept"}}},

	{"POST", "/api/v1/workflow-runs", api_run_create, ROUTE_EXECUTE, "Starts a run, once for each key.",
	 .one_unit = true, .id = "startRun", .query = {{"wait", "Wait"}}, .body = "RunCreate",
	 .answers = {{201, "RunCreated"}, {200, "RunCreated"}}, .etag = true,
	 .errors = {HX_NOT_FOUND, HX_RUN_EXPIRED, HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_KEY_RESERVED, HX_KEY_REUSED}},
	{"GET", "/api/v1/workflow-runs", api_run_list, ROUTE_READ, "Lists runs, the newest first.",
	 .id = "listRuns", .query = {{"status", "RunStatus"}, {"definitionId", "Text"}, {"unknown", "Unknown"}, {"parent", "RunId"}, PAGE},
	 .answers = {{200, "RunPage"}}},
	{"GET", "/api/v1/workflow-runs/{id}", api_run_show, ROUTE_READ, "Shows a run, or waits for its end.",
	 .id = "getRun", .query = {{"wait", "Wait"}}, .answers = {{200, "WholeRun"}}, .etag = true,
	 .errors = {HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/cancel", api_run_cancel, ROUTE_EXECUTE, "Cancels a run and compensates.",
	 .id = "cancelRun", .body = "RunMove", .answers = {{200, "RunMoved"}, {202, "RunMoved"}}, .etag = true,
	 .errors = {HX_ALREADY_COMPLETED, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/retry", api_run_retry, ROUTE_EXECUTE, "Tries a failed step again.",
	 .id = "retryRun", .body = "RunMove", .answers = {{200, "RunMoved"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/pause", api_run_pause, ROUTE_EXECUTE, "Begins no further step.",
	 .id = "pauseRun", .body = "RunMove", .answers = {{200, "RunMoved"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/resume", api_run_resume, ROUTE_EXECUTE, "Goes on after a pause.",
	 .id = "resumeRun", .body = "RunMove", .answers = {{200, "RunMoved"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/events/{event}", api_run_event, ROUTE_EXECUTE, "Sends a run an event.",
	 .id = "sendEvent", .body = "Event", .answers = {{202, "EventTaken"}, {200, "EventTaken"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/approvals/{step}", api_run_approve, ROUTE_EXECUTE,
	 "Decides an approval that a run waits for.",
	 .id = "decideApproval", .body = "Approval", .answers = {{200, "RunMoved"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_ENTRY_LOCKED, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/workflow-runs/{id}/steps/{step}/resolve", api_run_resolve, ROUTE_EXECUTE,
	 "Says what became of a step that is UNKNOWN.",
	 .id = "resolveStep", .body = "Resolution", .answers = {{200, "RunMoved"}}, .etag = true,
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},

	{"GET", "/api/v1/workflow-runs/{id}/why", api_run_why, ROUTE_READ, "Says what a run is waiting for.",
	 .id = "getRunWhy", .answers = {{200, "Explanation"}}, .errors = {HX_RUN_EXPIRED}},
	{"GET", "/api/v1/workflow-runs/{id}/history", api_run_history, ROUTE_READ, "Tells the history of a run.",
	 .id = "getRunHistory", .query = {PAGE}, .answers = {{200, "HistoryPage"}}, .errors = {HX_RUN_EXPIRED}},
	/* Each of these is there by workflow and key, too: api_run_key.c makes those. */

	{"POST", "/api/v1/jobs", api_job_push, ROUTE_EXECUTE, "Pushes one job, or many.",
	 .id = "pushJobs", .body = "JobPushes", .answers = {{201, "JobsPushed"}}},
	{"GET", "/api/v1/jobs", api_job_list, ROUTE_READ, "Lists jobs, by status and queue.",
	 .id = "listJobs",
	 .query = {{"status", "JobStatus"}, {"queue", "Text"}, PAGE}, .answers = {{200, "JobPage"}}},
	{"POST", "/api/v1/jobs/claim", api_job_claim, ROUTE_EXECUTE, "Claims due jobs, waiting for some if need be.",
	 .id = "claimJobs", .body = "JobClaim", .answers = {{200, "JobsClaimed"}}},
	{"GET", "/api/v1/jobs/{id}", api_job_show, ROUTE_READ, "Shows a job.",
	 .id = "getJob", .answers = {{200, "Job"}}, .etag = true},
	{"POST", "/api/v1/jobs/{id}/heartbeat", api_job_heartbeat, ROUTE_EXECUTE, "Keeps the claim on a job.",
	 .id = "heartbeatJob", .body = "JobHeartbeat", .answers = {{200, "JobKept"}}, .errors = {HX_STALE_FENCE}},
	{"POST", "/api/v1/jobs/{id}/complete", api_job_complete, ROUTE_EXECUTE, "Says that a job is done.",
	 .id = "completeJob", .body = "JobComplete", .answers = {{200, "JobSettled"}}, .errors = {HX_STALE_FENCE}},
	{"POST", "/api/v1/jobs/{id}/fail", api_job_fail, ROUTE_EXECUTE, "Says that a job was not done.",
	 .id = "failJob", .body = "JobFail", .answers = {{200, "JobSettled"}}, .errors = {HX_STALE_FENCE}},
	{"POST", "/api/v1/jobs/{id}/redrive", api_job_redrive, ROUTE_EXECUTE, "Gives a parked job another try.",
	 .one_unit = true, .id = "redriveJob", .answers = {{200, "JobSettled"}}, .errors = {HX_WRONG_STATUS}},

	{"POST", "/api/v1/batches", api_batch_create, ROUTE_EXECUTE, "Creates a batch with its items.",
	 .id = "createBatch", .query = {{"wait", "Wait"}}, .body = "BatchCreate",
	 .answers = {{201, "BatchCreated"}, {200, "BatchCreated"}},
	 .errors = {HX_NOT_FOUND, HX_STALE_FENCE, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"GET", "/api/v1/batches", api_batch_list, ROUTE_READ, "Lists batches, the newest first.",
	 .id = "listBatches",
	 .query = {{"status", "BatchStatus"}, {"workflow", "Text"}, PAGE}, .answers = {{200, "BatchPage"}}},
	{"GET", "/api/v1/batches/{id}", api_batch_show, ROUTE_READ, "Shows a batch, or waits for its end.",
	 .id = "getBatch", .query = {{"wait", "Wait"}}, .answers = {{200, "Batch"}}, .errors = {HX_RUN_EXPIRED}},
	{"POST", "/api/v1/batches/{id}/items", api_batch_add_items, ROUTE_EXECUTE, "Adds items to a held batch.",
	 .id = "addItems", .body = "ItemsAdd", .answers = {{200, "Batch"}},
	 .errors = {HX_WRONG_STATUS, HX_CLAIM_FAILED, HX_STALE_FENCE, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"GET", "/api/v1/batches/{id}/items", api_batch_items, ROUTE_READ, "Lists the items of a batch.",
	 .id = "listItems", .query = {{"status", "ItemStatus"}, {"decision", "ItemDecision"}, PAGE},
	 .answers = {{200, "ItemPage"}}, .errors = {HX_RUN_EXPIRED}},
	{"POST", "/api/v1/batches/{id}/start", api_batch_start, ROUTE_EXECUTE, "Starts a held batch.",
	 .id = "startBatch", .body = "Nothing", .answers = {{200, "Batch"}},
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/batches/{id}/cancel", api_batch_cancel, ROUTE_EXECUTE, "Cancels a batch and refunds it.",
	 .id = "cancelBatch", .body = "Nothing", .answers = {{200, "Batch"}, {202, "BatchAccepted"}},
	 .errors = {HX_WRONG_STATUS, HX_ALREADY_COMPLETED, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/batches/{id}/items/{n}/accept", api_batch_accept, ROUTE_EXECUTE, "Accepts an item.",
	 .id = "acceptItem", .body = "Nothing", .answers = {{200, "Item"}},
	 .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},
	{"POST", "/api/v1/batches/{id}/items/{n}/resolve", api_batch_resolve, ROUTE_EXECUTE,
	 "Says what became of an item that is UNKNOWN.",
	 .id = "resolveItem", .body = "Resolution",
	 .answers = {{200, "Item"}}, .errors = {HX_WRONG_STATUS, HX_CONCURRENCY_ERROR, HX_RUN_EXPIRED}},

	{"POST", "/api/v1/accounts", api_account_create, ROUTE_ADMIN, "Opens an account.",
	 .one_unit = true, .id = "createAccount",
	 .body = "AccountCreate", .answers = {{201, "Account"}}, .errors = {HX_ALREADY_EXISTS}},
	{"GET", "/api/v1/accounts", api_account_list, ROUTE_READ, "Lists accounts, by id.",
	 .id = "listAccounts", .query = {PAGE}, .answers = {{200, "AccountPage"}}},
	{"GET", "/api/v1/accounts/{id}", api_account_show, ROUTE_READ, "Shows an account.",
	 .id = "getAccount", .answers = {{200, "Account"}}},
	{"GET", "/api/v1/accounts/{id}/ledger", api_account_ledger, ROUTE_READ, "Lists what made its balance.",
	 .id = "getLedger", .query = {PAGE}, .answers = {{200, "LedgerPage"}}},
	{"POST", "/api/v1/accounts/{id}/credit", api_account_credit, ROUTE_ADMIN, "Credits it, once for each key.",
	 .id = "creditAccount", .body = "Credit", .answers = {{200, "Credited"}},
	 .errors = {HX_ALREADY_EXISTS, HX_CONCURRENCY_ERROR}},

	{"GET", "/api/v1/openapi.json", api_openapi, ROUTE_PUBLIC, "Describes this API, in OpenAPI 3.1.",
	 .id = "getOpenapi", .answers = {{200, "Document"}, {304, NULL}}, .etag = true},
	{"GET", "/healthz", api_healthz, ROUTE_PUBLIC, "The process is alive.",
	 .id = "getHealth", .answers = {{200, "Text"}}},
	{"GET", "/readyz", api_readyz, ROUTE_PUBLIC, "The engine takes work.",
	 .id = "getReadiness", .answers = {{200, "Text"}, {503, "Text"}}},
	{"GET", "/metrics", api_metrics, ROUTE_READ, "Numbers for Prometheus.",
	 .id = "getMetrics", .answers = {{200, "Text"}}},
};
/* clang-format on */

const struct route *api_routes_written(size_t *ret_n)
{
	*ret_n = sizeof routes / sizeof *routes;
	return routes;
}
