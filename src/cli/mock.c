/* See mock.h. What a service does here is what it does in trial/ledger.c: the replay compares the two. */
#include "cli/mock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_write.h"
#include "base/thread.h"
#include "serve/server.h"

#define KEYS_MAX 256
#define KEY_BYTES 256
#define WAITING_MAX 16

enum mock_state { KEY_DONE, KEY_LATE, KEY_ASKED_LATE, KEY_VOID, KEY_GONE };

/* What is known of a key. */
struct mock_key {
	char key[KEY_BYTES];
	const struct example_mock *service;
	enum mock_state state;
	unsigned times;
};

struct mock_call {
	struct http_exchange *exchange; /* NULL: it was answered */
	const struct example_mock *service;
	const char *key;
	bool cut; /* has no answer to come */
};

struct mock {
	pthread_mutex_t mutex;
	struct http_server *server;
	char url[64];
	const struct example *example;
	size_t services_n;
	const struct example_mock *services;
	const char *holds;
	unsigned calls, asked[EXAMPLE_SERVICES_MAX];
	bool paused, crashed;
	struct mock_call waiting[WAITING_MAX];
	size_t keys_n;
	struct mock_key keys[KEYS_MAX];
};

/* ---- the ledger ---- */

static struct mock_key *find_key(struct mock *m, const char *key, size_t n)
{
	for (size_t i = 0; i < m->keys_n; i++)
		if (m->keys[i].state != KEY_GONE && strlen(m->keys[i].key) == n && memcmp(m->keys[i].key, key, n) == 0)
			return &m->keys[i];
	return NULL;
}

static struct mock_key *add_key(struct mock *m, const char *key, size_t n, const struct example_mock *service,
				enum mock_state state)
{
	struct mock_key *k = &m->keys[m->keys_n < KEYS_MAX ? m->keys_n++ : KEYS_MAX - 1];

	*k = (struct mock_key){.service = service, .state = state, .times = state == KEY_DONE};
	snprintf(k->key, sizeof k->key, "%.*s", (int)n, key);
	return k;
}

static void happen(struct mock_key *k)
{
	bool again = k->state == KEY_DONE;

	if (k->state != KEY_VOID && !(again && (k->service->dedupes || k->service->repeats))) {
		k->state = KEY_DONE;
		k->times++;
	}
}

static void apply(struct mock *m, const struct mock_call *call)
{
	struct mock_key *k = find_key(m, call->key, strlen(call->key));

	if (k && (k->state == KEY_DONE || k->state == KEY_VOID))
		happen(k);
	else /* what is late under the same key may come after this */
		(void)add_key(m, call->key, strlen(call->key), call->service, KEY_DONE);
}

static bool is_late(const struct mock_key *k)
{
	return k->state == KEY_LATE || k->state == KEY_ASKED_LATE;
}

/* It happens beside what the key has done already, which it may repeat. */
static void land(struct mock *m, struct mock_key *late)
{
	struct mock_key *done;

	late->state = KEY_GONE;
	done = find_key(m, late->key, strlen(late->key));
	if (done && !is_late(done))
		happen(done);
	else
		(void)add_key(m, late->key, strlen(late->key), late->service, KEY_DONE);
}

static struct mock_key *find_late(struct mock *m, const char *key, size_t n)
{
	for (size_t i = 0; i < m->keys_n; i++)
		if (is_late(&m->keys[i]) && (!key || (strlen(m->keys[i].key) == n && !memcmp(m->keys[i].key, key, n))))
			return &m->keys[i];
	return NULL;
}

/* ---- answers ---- */

static void respond(const struct mock_call *call, int status, struct slice body)
{
	http_respond_text(call->exchange, status, "application/json", body);
}

static void cut_off(const struct mock_call *call)
{
	http_stream_start(call->exchange, &(const struct http_answer){.status = 200}, /* length= */ -1, NULL, NULL);
	http_stream_abort(call->exchange);
}

static void answer_probe(struct mock *m, const struct mock_call *call, size_t n)
{
	struct mock_key *late = find_late(m, call->key, n), *key;

	if (late && call->service->voids)
		late->state = KEY_GONE;
	else if (late && !call->service->guesses && late->state == KEY_LATE) {
		late->state = KEY_ASKED_LATE;
		respond(call, 200, slice_str("{\"outcome\":\"unknown\"}"));
		return;
	} else if (late && !call->service->guesses) {
		land(m, late);
	}
	key = find_key(m, call->key, n);
	respond(call, 200,
		slice_str(key && key->state == KEY_DONE ? "{\"outcome\":\"done\"}" : "{\"outcome\":\"not_done\"}"));
}

static void answer_void(struct mock *m, const struct mock_call *call, size_t n)
{
	struct mock_key *late = find_late(m, call->key, n);

	if (late)
		late->state = KEY_GONE;
	if (!find_key(m, call->key, n))
		(void)add_key(m, call->key, n, call->service, KEY_VOID);
	apply(m, call);
	respond(call, 200, call->service->returns);
}

static unsigned next_outcome(struct mock *m, const struct mock_call *call)
{
	for (size_t i = 0; i < m->example->services_n; i++) {
		const struct example_service *said = &m->example->services[i];
		unsigned n = m->asked[i];

		if (strcmp(said->name, call->service->action) != 0)
			continue;
		m->asked[i]++;
		return said->outcomes[n < said->n ? n : said->n - 1];
	}
	return MAY_DONE;
}

static void answer_done(struct mock *m, const struct mock_call *call)
{
	const struct mock_key *k;

	apply(m, call);
	k = find_key(m, call->key, strlen(call->key));
	if (k && k->state == KEY_VOID)
		respond(call, 422, slice_str("{\"is_invalid\":true}"));
	else
		respond(call, 200, call->service->returns);
}

static void wait_in_line(struct mock *m, struct mock_call call)
{
	for (size_t i = 0; i < WAITING_MAX; i++)
		if (!m->waiting[i].exchange) {
			m->waiting[i] = call;
			return;
		}
	cut_off(&call);
}

/* Its caller stands still, or dies: what of it is done is what would be done without an answer. */
static void stand_still(struct mock *m, struct mock_call call, unsigned outcome)
{
	bool pause = outcome >= OUTCOME_PAUSE;
	unsigned cut = outcome - (pause ? OUTCOME_PAUSE : OUTCOME_CRASH);

	if (cut == OUTCOME_CRASH_AFTER - OUTCOME_CRASH)
		apply(m, &call);
	else if (cut == OUTCOME_CRASH_LATE - OUTCOME_CRASH)
		(void)add_key(m, call.key, strlen(call.key), call.service, KEY_LATE);
	call.cut = true;
	*(pause ? &m->paused : &m->crashed) = true;
	wait_in_line(m, call);
}

static void answer(struct mock *m, const struct mock_call *call)
{
	const char *probe = strstr(call->key, "/probe/"), *voids = strstr(call->key, "/void/");
	unsigned outcome = next_outcome(m, call);

	if (outcome >= MAYS_N) {
		stand_still(m, *call, outcome);
	} else if (outcome == MAY_DONE && probe) {
		answer_probe(m, call, (size_t)(probe - call->key));
	} else if (outcome == MAY_DONE && strstr(call->key, "/validation/")) {
		respond(call, 200, call->service->returns);
	} else if (outcome == MAY_DONE && voids) {
		answer_void(m, call, (size_t)(voids - call->key));
	} else if (outcome == MAY_DONE) {
		answer_done(m, call);
	} else if (outcome == MAY_FAILED) {
		respond(call, 429, slice_str("{}"));
	} else if (outcome == MAY_REJECTED) {
		respond(call, 422, slice_str("{\"is_invalid\":true}"));
	} else {
		if (outcome == MAY_TIMEOUT_AFTER || outcome == MAY_FAILED_AFTER)
			apply(m, call);
		if (outcome == MAY_LATE)
			(void)add_key(m, call->key, strlen(call->key), call->service, KEY_LATE);
		if (outcome == MAY_FAILED_AFTER)
			respond(call, 500, slice_str("{}"));
		else
			cut_off(call);
	}
}

/* ---- calls ---- */

static const struct example_mock *service_at(const struct mock *m, struct slice path)
{
	for (size_t i = 0; i < m->services_n; i++) {
		size_t n = strlen(m->services[i].action);

		if (path.n > n && memcmp(path.p + 1, m->services[i].action, n) == 0 &&
		    (path.n == n + 1 || path.p[n + 1] == '/'))
			return &m->services[i];
	}
	return NULL;
}

static void take_call(void *data, struct http_exchange *exchange)
{
	struct mock *m = data;
	const struct wire_request *request = &http_exchange_request(exchange)->wire;
	const struct wire_field *key = wire_find(request->head.fields, "idempotency-key", NULL);
	struct mock_call call = {.exchange = exchange, .service = service_at(m, request->path)};

	if (!call.service || !key) {
		http_respond_text(exchange, 404, "application/json", slice_str("{}"));
		return;
	}
	call.key = arena_copy(http_exchange_arena(exchange), key->value).p;
	LOCKED(&m->mutex);
	m->calls++;
	if (m->holds && strcmp(m->holds, call.service->action) == 0)
		wait_in_line(m, call);
	else
		answer(m, &call);
}

/* ---- for the one who asks ---- */

struct mock_sight mock_look(struct mock *m)
{
	struct mock_sight sight;
	LOCKED(&m->mutex);

	sight = (struct mock_sight){.calls = m->calls, .paused = m->paused, .crashed = m->crashed};
	for (size_t i = 0; i < WAITING_MAX; i++)
		sight.held += m->waiting[i].exchange && !m->waiting[i].cut;
	return sight;
}

void mock_hold(struct mock *m, const char *action)
{
	LOCKED(&m->mutex);
	m->holds = action;
	for (size_t i = 0; i < WAITING_MAX; i++) {
		struct mock_call call = m->waiting[i];

		if (!call.exchange || call.cut || (action && strcmp(call.service->action, action) == 0))
			continue;
		m->waiting[i].exchange = NULL;
		answer(m, &call);
	}
}

void mock_cut(struct mock *m)
{
	LOCKED(&m->mutex);
	m->paused = m->crashed = false;
	for (size_t i = 0; i < WAITING_MAX; i++)
		if (m->waiting[i].exchange && m->waiting[i].cut) {
			cut_off(&m->waiting[i]);
			m->waiting[i].exchange = NULL;
		}
}

bool mock_land(struct mock *m, const char *action)
{
	bool landed = false;
	LOCKED(&m->mutex);

	for (size_t i = 0; i < m->keys_n && !(landed && action); i++)
		if (is_late(&m->keys[i]) && (!action || strcmp(m->keys[i].service->action, action) == 0)) {
			land(m, &m->keys[i]);
			landed = true;
		}
	return landed;
}

void mock_ledger(struct mock *m, struct strbuf *out)
{
	LOCKED(&m->mutex);
	strbuf_add_char(out, '{');
	for (size_t i = 0; i < m->services_n; i++) {
		int64_t n = 0;

		for (size_t k = 0; k < m->keys_n; k++)
			n += m->keys[k].service == &m->services[i] ? m->keys[k].times : 0;
		json_more_int(out, m->services[i].action, m->services[i].repeats ? n > 0 : n);
	}
	strbuf_add_char(out, '}');
}

/* ---- its life ---- */

enum hx_code mock_new(const struct example *example, const struct example_mock *services, size_t n,
		      struct mock **ret_mock, struct hx_error *err)
{
	struct server_options options = server_options_default();
	struct mock *m = calloc(1, sizeof *m);
	enum hx_code code;

	if (!m)
		return error_set(err, HX_NO_MEMORY, "a mock service");
	m->example = example;
	m->services = services;
	m->services_n = n;
	pthread_mutex_init(&m->mutex, NULL);
	options.listen = "127.0.0.1:0";
	options.handle = take_call;
	options.data = m;
	options.loops = 1;
	options.clock = clock_system();
	code = http_server_new(&options, &m->server, err);
	if (code) {
		mock_free(m);
		return code;
	}
	snprintf(m->url, sizeof m->url, "http://127.0.0.1:%u", (unsigned)http_server_address(m->server)->port);
	*ret_mock = m;
	return HX_OK;
}

const char *mock_url(const struct mock *m)
{
	return m->url;
}

void mock_free(struct mock *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < WAITING_MAX; i++)
		if (m->waiting[i].exchange)
			cut_off(&m->waiting[i]);
	http_server_free(m->server);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}
