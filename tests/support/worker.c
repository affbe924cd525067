/* See worker.h. */
#include "support/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_number.h"
#include "base/json_walk.h"

void worker_init(struct worker *worker, int port, const char *name, const char *queue, int64_t lease_ms)
{
	*worker = (struct worker){
		.client = client_new(port, /* requester= */ NULL), .queue = queue, .lease_ms = lease_ms};
	snprintf(worker->name, sizeof worker->name, "%s", name);
}

void worker_release(struct worker *worker)
{
	client_free(worker->client);
	worker->client = NULL;
}

void worker_note_wrong(struct worker *worker, const char *what, const struct reply *reply)
{
	if (!worker->wrong[0])
		snprintf(worker->wrong, sizeof worker->wrong, "%s: %s: %d %.300s", worker->name, what, reply->status,
			 reply->body ? reply->body : "");
}

/* Without an answer its status is 0. */
static void ask(struct worker *worker, const char *path, const char *body, struct reply *ret_reply)
{
	if (worker->caller)
		(void)caller_call(worker->caller, "POST", path, body, ret_reply);
	else
		(void)client_call(worker->client, "POST", path, body, strlen(body), ret_reply);
}

static bool take_text(struct json job, const char *name, char *text, size_t bytes)
{
	struct json value;

	if (!json_find(job, slice_str(name), &value) || json_type(value) != JSON_STRING || value.raw.n - 2 >= bytes)
		return false;
	snprintf(text, bytes, "%.*s", (int)value.raw.n - 2, value.raw.p + 1);
	return true;
}

static bool take_number(struct json job, const char *name, int64_t *ret_number)
{
	struct json value;
	struct hx_error err;

	return json_find(job, slice_str(name), &value) && json_int64(value, &err, ret_number) == HX_OK;
}

static bool take_job(struct json value, struct worker_job *job)
{
	return take_text(value, "id", job->id, sizeof job->id) &&
	       take_text(value, "idempotencyKey", job->key, sizeof job->key) &&
	       take_number(value, "fence", &job->fence) && take_number(value, "attempt", &job->attempt);
}

static bool take_jobs(struct worker *worker, const struct reply *reply, size_t max, size_t *ret_n)
{
	struct json body, jobs, job;
	struct json_iter it;
	struct hx_error err;

	*ret_n = 0;
	if (reply->status != 200 || json_check(slice_of(reply->body, reply->body_n), &err, &body) ||
	    !json_find(body, slice_str("jobs"), &jobs))
		return false;
	it = json_iter_of(jobs);
	while (json_iter_element(&it, &job))
		if (*ret_n == max || !take_job(job, &worker->jobs[(*ret_n)++]))
			return false;
	return true;
}

size_t worker_claim(struct worker *worker, size_t max, int64_t wait_ms)
{
	struct reply reply;
	char body[300];
	size_t n;

	snprintf(body, sizeof body,
		 "{\"queues\":[\"%s\"],\"owner\":\"%s\",\"max\":%zu,\"leaseMs\":%lld,\"waitMs\":%lld}", worker->queue,
		 worker->name, max, (long long)worker->lease_ms, (long long)wait_ms);
	ask(worker, "/api/v1/jobs/claim", body, &reply);
	if (!take_jobs(worker, &reply, max, &n))
		worker_note_wrong(worker, "not the answer to a claim", &reply);
	reply_release(&reply);
	return n;
}

int worker_say(struct worker *worker, const struct worker_job *job, const char *verb, const char *more, char *ret_code)
{
	struct reply reply;
	char path[100], body[300];
	int status;

	snprintf(path, sizeof path, "/api/v1/jobs/%s/%s", job->id, verb);
	snprintf(body, sizeof body, "{\"owner\":\"%s\",\"fence\":%lld%s}", worker->name, (long long)job->fence, more);
	ask(worker, path, body, &reply);
	status = reply.status;
	if (ret_code)
		snprintf(ret_code, sizeof reply.code, "%s", reply.code);
	reply_release(&reply);
	return status;
}
