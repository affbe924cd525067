/* See proxy.h: the proxy as a whole. What happens to one request is proxy_job.c's. */
#include "proxy/proxy.h"

#include <stdlib.h>

#include "base/list.h"
#include "model/text.h"
#include "proxy/proxy_job.h"
#include "serve/metrics.h"
#include "serve/problem.h"

#define KEPT_BYTES_MAX (SIZE_MAX / 4) /* the policy's limit is looked at before */
#define SPARE_BYTES_MAX 16384         /* a buffer larger than this goes back to the system */

/* ---- rules ---- */

static struct proxy_rules *rules_new(const struct gate_config *config, void (*release)(void *owner), void *owner)
{
	struct proxy_rules *rules = calloc(1, sizeof *rules);

	if (rules)
		*rules = (struct proxy_rules){.references = 1, .config = config, .release = release, .owner = owner};
	return rules;
}

static struct proxy_rules *rules_hold(struct proxy *proxy)
{
	LOCKED(&proxy->mutex);
	atomic_fetch_add_explicit(&proxy->rules->references, 1, memory_order_relaxed);
	return proxy->rules;
}

static void rules_drop(struct proxy_rules *rules)
{
	if (!rules || atomic_fetch_sub_explicit(&rules->references, 1, memory_order_acq_rel) > 1)
		return;
	if (rules->release)
		rules->release(rules->owner);
	free(rules);
}

enum hx_code proxy_set_config(struct proxy *proxy, const struct gate_config *config, void (*release)(void *owner),
			      void *owner, struct hx_error *err)
{
	struct proxy_rules *rules = rules_new(config, release, owner), *before;

	if (!rules)
		return error_set(err, HX_NO_MEMORY, "no memory for the configuration");
	pthread_mutex_lock(&proxy->mutex);
	before = proxy->rules;
	proxy->rules = rules;
	pthread_mutex_unlock(&proxy->mutex);
	rules_drop(before);
	return HX_OK;
}

/* ---- jobs ---- */

static struct proxy_job *take_spare(struct proxy_loop *home)
{
	struct proxy_job *job = home->spare;

	if (job) {
		home->spare = job->next;
		home->spare_n--;
		return job;
	}
	job = calloc(1, sizeof *job);
	if (!job)
		return NULL;
	strbuf_init(&job->stored, KEPT_BYTES_MAX);
	strbuf_init(&job->kept, KEPT_BYTES_MAX);
	return job;
}

struct proxy_job *job_new(struct proxy_loop *home, struct http_exchange *exchange, struct proxy_rules *rules,
			  const struct gate_policy *policy)
{
	struct proxy_job *job = take_spare(home);

	if (!job)
		return NULL;
	job->home = home;
	job->exchange = exchange;
	job->request = http_exchange_request(exchange);
	job->rules = rules;
	job->policy = policy;
	LIST_PUSH(home->jobs, job);
	home->loop->guests++;
	return job;
}

static void release_job(struct proxy_job *job)
{
	rules_drop(job->rules);
	strbuf_release(&job->stored);
	strbuf_release(&job->kept);
	free(job);
}

static void tidy(struct strbuf *sb)
{
	if (sb->capacity > SPARE_BYTES_MAX)
		strbuf_release(sb);
	strbuf_reset(sb);
}

void job_free(struct proxy_job *job)
{
	struct proxy_loop *home = job->home;
	struct strbuf stored = job->stored, kept = job->kept;

	ASSERT(job->answer == ANSWER_GIVEN && !job->paused);
	LIST_DROP(home->jobs, job);
	home->loop->guests--;
	if (job->reserved)
		atomic_fetch_sub(&home->proxy->tunnels, 1);
	if (home->spare_n == PROXY_SPARE_MAX) {
		release_job(job);
		return;
	}
	rules_drop(job->rules);
	tidy(&stored);
	tidy(&kept);
	*job = (struct proxy_job){.stored = stored, .kept = kept, .next = home->spare};
	home->spare = job;
	home->spare_n++;
}

/* ---- loops ---- */

static struct proxy_loop *join(struct proxy *proxy, struct loop *loop)
{
	struct proxy_loop *home = calloc(1, sizeof *home);
	size_t i = 0;

	if (!home)
		return NULL;
	home->pool = upstream_join(proxy->upstream, loop);
	if (!home->pool) {
		free(home);
		return NULL;
	}
	home->proxy = proxy;
	home->loop = loop;
	arena_init(&home->scratch, 0);
	tunnels_init(&home->tunnels, loop, &proxy->tunnels);
	deadline_queue_init(&home->retries, 1, job_retry);
	loop_add_queue(loop, &home->retries);
	LOCKED(&proxy->mutex);
	while (i < HTTP_LOOPS_MAX && proxy->loops[i])
		i++;
	ASSERT(i < HTTP_LOOPS_MAX);
	proxy->loops[i] = home;
	return home;
}

/* This thread's own; made with its first request. NULL: no memory. */
static struct proxy_loop *home_of(struct proxy *proxy, struct loop *loop)
{
	for (size_t i = 0; i < HTTP_LOOPS_MAX; i++) {
		struct proxy_loop *home = proxy->loops[i];

		if (!home)
			break;
		if (home->loop == loop)
			return home;
	}
	return join(proxy, loop);
}

/* The loop has ended: nobody but us knows of these jobs any more. */
static void cut_off(struct proxy_job *job)
{
	if (job->answer == ANSWER_STREAMS)
		http_stream_abort(job->exchange);
	else if (job->exchange)
		http_respond_code(job->exchange, HX_STOPPING, NULL);
	release_job(job);
}

static void free_loop(struct proxy_loop *home)
{
	struct proxy_job *job, *next;

	if (!home)
		return;
	for (job = home->jobs; job; job = next) {
		next = job->next;
		cut_off(job);
	}
	for (job = home->spare; job; job = next) {
		next = job->next;
		release_job(job);
	}
	tunnels_free(&home->tunnels);
	arena_release(&home->scratch);
	free(home);
}

/* ---- life ---- */

enum hx_code proxy_new(const struct proxy_options *options, struct proxy **ret_proxy, struct hx_error *err)
{
	struct proxy *proxy = calloc(1, sizeof *proxy);
	enum hx_code code;

	if (!proxy)
		return error_set(err, HX_NO_MEMORY, "no memory for the proxy");
	proxy->options = *options;
	atomic_store(&proxy->storing_until, INT64_MAX);
	pthread_mutex_init(&proxy->mutex, NULL);
	proxy->rules = rules_new(options->config, NULL, NULL);
	code = proxy->rules ? upstream_new(options->upstream, options->clock, &proxy->upstream, err)
			    : error_set(err, HX_NO_MEMORY, "no memory for the proxy");
	if (code != HX_OK) {
		proxy_free(proxy);
		return code;
	}
	*ret_proxy = proxy;
	return HX_OK;
}

void proxy_hurry(struct proxy *proxy, int64_t ms)
{
	atomic_store(&proxy->storing_until, mono_add_ms(clock_mono(proxy->options.clock), ms).ns);
}

void proxy_free(struct proxy *proxy)
{
	if (!proxy)
		return;
	for (size_t i = 0; i < HTTP_LOOPS_MAX; i++)
		free_loop(proxy->loops[i]);
	upstream_free(proxy->upstream);
	rules_drop(proxy->rules);
	pthread_mutex_destroy(&proxy->mutex);
	free(proxy);
}

static void fit_policy(const struct gate_policy *policy, struct server_options *options)
{
	if (policy->max_request_bytes > options->bodies_bytes_max)
		options->bodies_bytes_max = policy->max_request_bytes;
	if (policy->read_timeout_ms > options->read_ms)
		options->read_ms = policy->read_timeout_ms;
}

void proxy_fit_server(struct proxy *proxy, struct server_options *options)
{
	const struct gate_config *config = proxy->options.config;

	options->handle = proxy_handle;
	options->begin = proxy_head;
	options->data = proxy;
	options->clock = proxy->options.clock;
	options->log = proxy->options.log;
	options->body_bytes_max = GATE_REQUEST_BYTES_MAX;
	options->body_limit = "max_request_bytes";
	options->read_ms = 0;
	fit_policy(&config->policy, options);
	fit_policy(&config->pass, options);
	for (size_t i = 0; i < config->routes_n; i++)
		fit_policy(&config->routes[i].policy, options);
}

int64_t proxy_ttl_ms(struct proxy *proxy)
{
	struct proxy_rules *rules = rules_hold(proxy);
	const struct gate_config *config = rules->config;
	int64_t longest = config->policy.ttl_ms;

	for (size_t i = 0; i < config->routes_n; i++)
		if (config->routes[i].policy.ttl_ms > longest)
			longest = config->routes[i].policy.ttl_ms;
	rules_drop(rules);
	return longest;
}

/* ---- requests ---- */

static void proxy_refuse(struct proxy *proxy, struct http_exchange *exchange, enum hx_code code, const char *detail)
{
	proxy_count(&proxy->stats.refused);
	http_respond_code(exchange, code, detail);
}

static const struct gate_policy *proxy_policy_of(const struct proxy_rules *rules, const struct wire_request *request)
{
	return gate_config_match(rules->config, request->method, request->path);
}

void proxy_head(void *data, struct http_exchange *exchange)
{
	struct proxy *proxy = data;
	const struct wire_request *request = &http_exchange_request(exchange)->wire;
	struct proxy_rules *rules = rules_hold(proxy);
	const struct gate_policy *policy = proxy_policy_of(rules, request);
	struct hx_error err;
	struct slice protocols;
	uint32_t hops;

	if (!policy)
		proxy_refuse(proxy, exchange, HX_NOT_IMPLEMENTED, "this method is not known here; case counts");
	else if (proxy_hops_left(request, &hops) == HOPS_UNREADABLE)
		proxy_refuse(proxy, exchange, HX_BAD_REQUEST, "Max-Forwards is not a number");
	else if (proxy_hops_left(request, &hops) == HOPS_NONE)
		proxy_answer_last_hop(exchange);
	else if (policy->guard && proxy_wants_upgrade(request, &protocols))
		proxy_refuse(
			proxy, exchange, HX_NOT_IMPLEMENTED,
			"Upgrade is not passed on here: this route is guarded, and what goes through a tunnel has no key; "
			"see \"guard\": false");
	else if (proxy_check_key(policy, request, http_exchange_arena(exchange), &err))
		proxy_refuse(proxy, exchange, err.code, err.detail);
	else
		http_read_body(exchange, policy->max_request_bytes, policy->read_timeout_ms);
	rules_drop(rules);
}

void proxy_handle(void *data, struct http_exchange *exchange)
{
	struct proxy *proxy = data;
	const struct http_request *request = http_exchange_request(exchange);
	struct proxy_rules *rules = rules_hold(
		proxy); /* its body may have come in between: what is in force now counts */
	const struct gate_policy *policy = proxy_policy_of(rules, &request->wire);
	struct proxy_loop *home;
	struct proxy_job *job;

	ASSERT(policy); /* proxy_head() knew it */
	if (request->body.n > policy->max_request_bytes) {
		proxy_refuse(proxy, exchange, HX_TOO_LARGE,
			     text_printf(http_exchange_arena(exchange),
					 "the body is larger than this route takes: max_request_bytes is %zu",
					 (size_t)policy->max_request_bytes));
		rules_drop(rules);
		return;
	}
	home = home_of(proxy, http_exchange_loop(exchange));
	job = home ? job_new(home, exchange, rules, policy) : NULL;
	if (job) {
		job_start(job);
	} else {
		rules_drop(rules);
		proxy_refuse(proxy, exchange, HX_NO_MEMORY, NULL);
	}
}

/* ---- counters ---- */

void proxy_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void proxy_read_stats(const struct proxy *proxy, struct proxy_stats *ret_stats)
{
	*ret_stats = (struct proxy_stats){
		.unknown = proxy->stats.unknown,
		.forwarded = proxy->stats.forwarded,
		.refused = proxy->stats.refused,
		.damaged = proxy->stats.damaged,
		.storing = (uint64_t)proxy->storing,
	};
	for (size_t i = 0; i < HX_GATE_OUTCOMES; i++)
		ret_stats->outcomes[i] = proxy->stats.outcomes[i];
}

/* As long as it has not been counted it is left out: 0 would be a statement. */
static void add_held(const struct gate_held *held, struct strbuf *out)
{
	int64_t count = held ? atomic_load(&held->count) : -1;

	metrics_add_head(out, "hapax_gate_held", "gauge",
			 "Records that are held until a person says what became of them.");
	if (count >= 0)
		strbuf_addf(out, "hapax_gate_held %lld\n", (long long)count);
}

void proxy_write_metrics(const struct proxy *proxy, struct strbuf *out)
{
	struct upstream_stats upstream;
	struct proxy_stats stats;

	proxy_read_stats(proxy, &stats);
	upstream_read_stats(proxy->upstream, &upstream);
	metrics_add_head(out, "hapax_gate_outcomes_total", "counter", "What became of guarded requests.");
	for (size_t i = 0; i < HX_GATE_OUTCOMES; i++)
		strbuf_addf(out, "hapax_gate_outcomes_total{outcome=\"%s\"} %llu\n",
			    hx_gate_outcome_name((enum hx_gate_outcome)i), (unsigned long long)stats.outcomes[i]);

	const struct metric metrics[] = {
		{"hapax_gate_unknown_outcomes_total", "counter",
		 "Guarded requests that the upstream may or may not have executed.", stats.unknown},
		{"hapax_gate_forwarded_total", "counter", "Requests that were not guarded.", stats.forwarded},
		{"hapax_gate_refused_total", "counter", "Requests that were answered before anything was done.",
		 stats.refused},
		{"hapax_gate_tunnels", "gauge", "Tunnels that are open (Upgrade), and those that are asked for.",
		 (uint64_t)proxy->tunnels},
		{"hapax_gate_tunnels_total", "counter", "Tunnels that were opened.", proxy->stats.tunnels},
		{"hapax_gate_damaged_total", "counter", "Stored answers that are damaged, and were not given again.",
		 stats.damaged},
		{"hapax_gate_storing", "gauge", "Answers that went out unstored and are still to be stored.",
		 stats.storing},
		{"hapax_gate_upstream_connections", "gauge", "Connections to the upstream, idle ones included.",
		 upstream.connections_open},
		{"hapax_gate_upstream_connections_total", "counter", "Connections made to the upstream.",
		 upstream.connections_total},
		{"hapax_gate_upstream_reused_total", "counter", "Requests sent on a connection that was there.",
		 upstream.reused},
		{"hapax_gate_upstream_repeated_total", "counter",
		 "Unguarded requests that were sent once more after an idle connection died.", upstream.repeated},
	};

	METRICS_ADD_ALL(out, metrics);
	metrics_add_clock(out, proxy->options.store->clock);
	add_held(proxy->options.held, out);
	metrics_add_process(out);
}
