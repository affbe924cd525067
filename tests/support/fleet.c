/* See fleet.h. */
#include "support/fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"

#define GIVE_UP_MS 60000

static void come_up(struct fleet *fleet, int node)
{
	atomic_store(&fleet->ports[node], fleet->scene->nodes[node]->port);
}

void fleet_add_proxies(struct fleet *fleet, struct scene *scene, int n)
{
	char name[32];

	for (int node = 0; node < n; node++) {
		fleet->proxies[node] = pg_proxy_new(store_pg_port());
		assert_non_null(fleet->proxies[node]);
		snprintf(name, sizeof name, "node-%d", node);
		store_url(scene->store, pg_proxy_port(fleet->proxies[node]), name, scene->db_urls[node],
			  sizeof scene->db_urls[node]);
	}
}

void fleet_start(struct fleet *fleet, struct scene *scene, int n)
{
	fleet->scene = scene;
	fleet->n = n;
	for (int node = 0; node < n; node++)
		fleet_revive(fleet, node);
}

/* Its numbers are gone with the process. */
static void add_numbers(struct fleet *fleet, int node)
{
	fleet->fenced_writes += scene_metric(fleet->scene, node, "hapax_fenced_writes_total");
	fleet->overruns += scene_metric(fleet->scene, node, "hapax_claim_overruns_total");
}

void fleet_kill(struct fleet *fleet, int node)
{
	add_numbers(fleet, node);
	scene_kill(fleet->scene, node);
	atomic_store(&fleet->ports[node], 0);
	fleet->kills++;
}

void fleet_revive(struct fleet *fleet, int node)
{
	scene_start(fleet->scene, node);
	come_up(fleet, node);
}

void fleet_pause(struct fleet *fleet, int node)
{
	atomic_store(&fleet->ports[node], 0);
	serve_pause(fleet->scene->nodes[node]);
	fleet->pauses++;
}

void fleet_continue(struct fleet *fleet, int node)
{
	serve_continue(fleet->scene->nodes[node]);
	come_up(fleet, node);
}

void fleet_cut_off(struct fleet *fleet, int node)
{
	atomic_store(&fleet->ports[node], 0);
	pg_proxy_stall(fleet->proxies[node]);
	fleet->cut_offs++;
}

void fleet_reconnect(struct fleet *fleet, int node)
{
	pg_proxy_drop(fleet->proxies[node]);
	come_up(fleet, node);
}

void fleet_stop_one(struct fleet *fleet, int node)
{
	add_numbers(fleet, node);
	atomic_store(&fleet->ports[node], 0);
	scene_stop(fleet->scene, node);
}

void fleet_stop(struct fleet *fleet)
{
	for (int node = 0; node < fleet->n; node++)
		if (fleet->scene->nodes[node])
			fleet_stop_one(fleet, node);
}

static void show_unfinished(PGconn *raw)
{
	static const char sql[] =
		"SELECT format('run %s: %s, version %s, fence %s, owner %s, lease %s ms, due in %s ms, at step %s, attempt %s, "
		"step status %s, awaits %s, job %s %s', s.id, s.status, s.version, s.fence, coalesce(s.owner, '-'),"
		" s.until - hx_now_ms(), r.due_at - hx_now_ms(), r.at_step, r.attempt, r.step_status, r.awaits, r.job,"
		" (SELECT format('%s attempt %s due in %s ms, lease %s ms', js.status, j.attempt, j.due_at - hx_now_ms(),"
		" js.until - hx_now_ms()) FROM hx_job j JOIN hx_subject js ON js.id = j.subject WHERE j.subject = r.job))"
		" FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE s.status NOT IN ('COMPLETED', 'CANCELLED') LIMIT 10";
	PGresult *res = PQexec(raw, sql);

	for (int i = 0; i < PQntuples(res); i++)
		print_message("%s\n", PQgetvalue(res, i, 0));
	PQclear(res);
}

void fleet_await_runs(struct fleet *fleet, int64_t deadline_ms, const char *(*wrong)(void *context), void *context)
{
	static const char sql[] = "SELECT count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
				  " WHERE s.status NOT IN ('COMPLETED', 'CANCELLED')";
	int64_t until_ms = await_now_ms() + deadline_ms;
	PGconn *raw = store_raw(fleet->scene->store);
	const char *words;
	char left[32];

	while (raw_run(raw, sql, left, sizeof left), strcmp(left, "0") != 0) {
		words = wrong ? wrong(context) : NULL;
		if (words)
			fail_msg("%s", words);
		if (await_now_ms() > until_ms) {
			show_unfinished(raw);
			fail_msg("%s runs have not ended after %d ms", left, (int)deadline_ms);
		}
		await_pause();
	}
	PQfinish(raw);
}

void fleet_release(struct fleet *fleet)
{
	for (int node = 0; node < SCENE_NODES_MAX; node++)
		pg_proxy_free(fleet->proxies[node]);
}

/* ---- callers ---- */

struct caller {
	struct fleet *fleet;
	uint64_t random;
	struct {
		struct client *client;
		int port;
	} nodes[SCENE_NODES_MAX];
};

struct caller *caller_new(struct fleet *fleet, uint64_t seed)
{
	struct caller *caller = calloc(1, sizeof *caller);

	caller->fleet = fleet;
	caller->random = (seed + 1) * 0x9e3779b97f4a7c15u;
	return caller;
}

void caller_free(struct caller *caller)
{
	if (!caller)
		return;
	for (int node = 0; node < SCENE_NODES_MAX; node++)
		client_free(caller->nodes[node].client);
	free(caller);
}

uint64_t caller_draw(struct caller *caller, uint64_t below)
{
	caller->random ^= caller->random << 13;
	caller->random ^= caller->random >> 7;
	caller->random ^= caller->random << 17;
	return (caller->random >> 16) % below;
}

/* A connection to this node as it lives now; NULL: it does not. */
static struct client *client_of(struct caller *caller, int node)
{
	int port = atomic_load(&caller->fleet->ports[node]);

	if (port && port != caller->nodes[node].port) {
		client_free(caller->nodes[node].client);
		caller->nodes[node].client = client_new(port, /* requester= */ NULL);
		caller->nodes[node].port = port;
	}
	return port ? caller->nodes[node].client : NULL;
}

static bool ask(struct caller *caller, int node, const char *method, const char *path, const char *body,
		struct reply *ret_reply)
{
	struct client *client = client_of(caller, node);

	*ret_reply = (struct reply){0};
	return client && client_call(client, method, path, body, strlen(body), ret_reply);
}

bool caller_try(struct caller *caller, const char *method, const char *path, const char *body, struct reply *ret_reply)
{
	return ask(caller, (int)caller_draw(caller, (uint64_t)caller->fleet->n), method, path, body, ret_reply);
}

unsigned caller_call(struct caller *caller, const char *method, const char *path, const char *body,
		     struct reply *ret_reply)
{
	int64_t until_ms = await_now_ms() + GIVE_UP_MS;
	uint64_t node = caller_draw(caller, (uint64_t)caller->fleet->n);

	for (unsigned tries = 1; await_now_ms() < until_ms; tries++, node++) {
		if (ask(caller, (int)(node % (uint64_t)caller->fleet->n), method, path, body, ret_reply) &&
		    ret_reply->status != 503 && ret_reply->status != 504)
			return tries;
		reply_release(ret_reply);
		await_pause();
	}
	return 0;
}
