/*
 * API keys against real servers on both stores: what is claimed by headers, how soon a revoked key is refused, what a server
 * without any lets in. Which of them may do what: test_authorisation.c.
 */
#include "http/keyed_world.h"

/* ---- who one says to be ---- */

static int status_with(struct scene *scene, const char *method, const char *path, const char *fields)
{
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
	int status;

	reply_release(&scene->last);
	assert_true(client_call_with(client, method, path, fields, "", 0, &scene->last));
	status = scene->last.status;
	client_free(client);
	return status;
}

static int status_of_fields(struct scene *scene, const char *format, ...)
{
	char fields[600];
	va_list args;

	va_start(args, format);
	vsnprintf(fields, sizeof fields, format, args);
	va_end(args);
	return status_with(scene, "GET", "/api/v1/jobs", fields);
}

static void test_how_a_key_is_sent(void **state)
{
	struct scene *scene = *state;
	const char *key, *other;

	begin(scene);
	key = key_of(ALPHA, API_KEY_READ);
	other = key_of(ALPHA, API_KEY_EXECUTE);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "authorization: bearer   %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Basic eDp5\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Bearer %s\r\n", key, key), 200);
	/* Which of two is meant, nobody can know. */
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Bearer %s\r\n", key, other), 401);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nX-API-Key: %s\r\n", key, key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n", key, key),
			 401);
	/* Not quite the key. */
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s0\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %.68s\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %.16s_\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer\r\n"), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: %s\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "X-API-Key: \r\n"), 401);
	/* What the key says stands; a header may say the same. */
	assert_int_equal(
		status_of_fields(scene, "X-API-Key: %s\r\nHapax-Workspace: alpha\r\nHapax-Requester: r\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nHapax-Workspace: beta\r\n", key), 403);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nHapax-Requester: admin\r\n", key), 403);
	assert_string_equal(scene->last.code, "FORBIDDEN");
	scene_stop(scene, 0);
}

/* The same Idempotency-Key, the same requester, the same path, another workspace: it is another request. */
static void test_idempotency_keys_do_not_cross(void **state)
{
	struct scene *scene = *state;
	char fields[300];

	begin(scene);
	for (int w = 0; w < WORKSPACES; w++) {
		snprintf(fields, sizeof fields, "X-API-Key: %s\r\nIdempotency-Key: same\r\n",
			 key_of(w, API_KEY_EXECUTE));
		assert_int_equal(status_with(scene, "POST", "/api/v1/entities/doc", fields), 201);
		assert_non_null(strstr(scene->last.head, "Idempotency-Status: created"));
		assert_int_equal(status_with(scene, "POST", "/api/v1/entities/doc", fields), 201);
		assert_non_null(strstr(scene->last.head, "Idempotency-Status: replayed"));
	}
	scene_stop(scene, 0);
}

/* ---- when there are none ---- */

static bool is_refused_without(struct scene *scene)
{
	return ask(scene, 0, "GET", "/api/v1/jobs", NULL, NULL)->status == 401;
}

static void test_the_first_key_closes_the_door(void **state)
{
	struct scene *scene = *state;
	char unknown[] = "hx_0ahva3hj60w00_msy4gn451rw6rv4xzszqed9t7rv314wn8h6ejjsj3kqyydcsfv0g";
	struct key key;

	scene_start(scene, 0);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 200);
	must(scene, "GET", "/api/v1/jobs", unknown, NULL, 401); /* who has a key for somewhere else is told so */
	make_key(scene, "--scope read", &key);
	must(scene, "GET", "/api/v1/jobs", key.text, NULL, 200); /* at once */
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, is_refused_without(scene));
	/* And it stays closed when the last one has gone, and over a restart. */
	revoke_key(scene, &key);
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, ask(scene, 0, "GET", "/api/v1/jobs", key.text, NULL)->status == 401);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 401);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 401);
	must(scene, "GET", "/healthz", NULL, NULL, 200);
	must(scene, "GET", "/readyz", NULL, NULL, 200);
	scene_stop(scene, 0);
}

/* Beyond loopback only with keys, and only with TLS. */
static void test_beyond_loopback(void **state)
{
	struct scene *scene = *state;
	char arguments[1500], line[200];
	struct key key;

	scene_start(scene, 0); /* makes the schema */
	scene_stop(scene, 0);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0 --tls-terminated", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
	make_key(scene, "--scope admin", &key);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
}

static void assert_origin(struct scene *scene, const char *fields, int status)
{
	static const char body[] = "[{\"queue\":\"q\"}]";
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);

	reply_release(&scene->last);
	assert_true(client_call_with(client, "POST", "/api/v1/jobs", fields, body, sizeof body - 1, &scene->last));
	if (scene->last.status != status)
		fail_msg("%s: %d, not %d: %.400s", fields, scene->last.status, status, scene->last.body);
	client_free(client);
}

static void assert_host(struct scene *scene, const char *host, int status)
{
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
	char request[200];

	snprintf(request, sizeof request, "GET /api/v1/jobs HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	reply_release(&scene->last);
	assert_true(client_raw(client, request, strlen(request), &scene->last));
	if (scene->last.status != status)
		fail_msg("%s: %d, not %d: %.400s", host, scene->last.status, status, scene->last.body);
	client_free(client);
}

/* Without keys loopback is the door, and every browser on the machine stands inside of it. */
static void test_web_pages_of_elsewhere(void **state)
{
	static const char *const here[] = {"",
					   "Origin: http://localhost:3000\r\n",
					   "Origin: http://127.0.0.1\r\n",
					   "Origin: https://[::1]:8443\r\n",
					   "Sec-Fetch-Site: same-origin\r\n",
					   "Sec-Fetch-Site: none\r\n"};
	static const char *const elsewhere[] = {"Origin: http://evil.example\r\n",
						"Origin: https://evil.example:7411\r\n",
						"Origin: http://127.0.0.1.evil.example\r\n",
						"Origin: http://192.0.2.1\r\n",
						"Origin: null\r\n",
						"Sec-Fetch-Site: cross-site\r\n",
						"Origin: \r\n",
						"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"};
	struct scene *scene = *state;
	char fields[300];
	struct key key;

	scene_start(scene, 0);
	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		assert_origin(scene, here[i], 201);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		assert_origin(scene, elsewhere[i], 403);
	/* A page of a domain that has become 127.0.0.1 sends no Origin when it reads. */
	assert_host(scene, "127.0.0.1", 200);
	assert_host(scene, "localhost:7411", 200);
	assert_host(scene, "[::1]:7411", 200);
	assert_host(scene, "LOCALHOST", 200);
	assert_host(scene, "127.8.9.10:1", 200);
	assert_host(scene, "evil", 403); /* a name without a dot can be made to mean 127.0.0.1, too */
	assert_host(scene, "evil:7411", 403);
	assert_host(scene, "localhostile", 403);
	assert_host(scene, "localhost.evil:7411", 403);
	assert_host(scene, "192.0.2.1", 403);
	assert_host(scene, "[::2]:7411", 403);
	assert_host(scene, "2130706433", 403); /* 127.0.0.1 as one number, which only browsers read so */
	assert_host(scene, "evil.example", 403);
	assert_host(scene, "127.0.0.1.evil.example:7411", 403);
	make_key(scene, "--scope admin", &key); /* a page that has a key was given it */
	snprintf(fields, sizeof fields, "%sAuthorization: Bearer %s\r\n", elsewhere[0], key.text);
	assert_origin(scene, fields, 201);
	scene_stop(scene, 0);
}

/* Who may not ask cannot make us read, or hold memory for what is never sent. */
static void test_no_body_is_read_without_a_key(void **state)
{
	static const char *const halves[] = {
		"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n[{",
		"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n[{",
		"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer hx_no\r\nContent-Length: 10\r\n\r\n",
		"PUT /api/v1/definitions/x HTTP/1.1\r\nHost: a\r\nContent-Length: 16000000\r\n\r\n{"};
	struct scene *scene = *state;
	struct key key;

	scene_start(scene, 0);
	make_key(scene, "--scope admin", &key);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);

		reply_release(&scene->last);
		assert_true(client_raw(client, halves[i], strlen(halves[i]), &scene->last));
		if (scene->last.status != 401)
			fail_msg("%s: %d", halves[i], scene->last.status);
		client_free(client);
	}
	scene_stop(scene, 0);
}

static const char call[] =
	"{'workflow':'call','kind':'entity','status_types':['draft','done'],'initial_status':'draft',"
	"'actions':{'Ring':{'kind':'http','url':'@/ring','effect':'keyed'}},"
	"'steps':[{'step_id':1,'step_key':'ring','status':'draft','successful_state':'done','action':'Ring'}]}";

static void fire_call(struct scene *scene, const char *key, const char *id, int status)
{
	char body[100], path[200];

	snprintf(body, sizeof body, "{'id':'%s'}", id);
	must(scene, "POST", "/api/v1/entities/call", key, body, 201);
	snprintf(path, sizeof path, "/api/v1/entities/call/%s/steps/ring", id);
	must(scene, "POST", path, key, "{}", status);
}

/* Whoever has a key need not be whoever owns the machine: its own services are out of reach unless they are listed. */
static void test_loopback_is_out_of_reach_once_there_are_keys(void **state)
{
	struct scene *scene = *state;
	struct key key;

	scene_define(scene, "call", call);
	scene_start(scene, 0);
	fire_call(scene, NULL, "before", 200);
	make_key(scene, "--scope admin", &key);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	fire_call(scene, key.text, "after", 502);
	assert_int_equal(service_count(scene->service, "/ring", NULL), 1);
	scene_stop(scene, 0);
	scene_configure(scene, "{'outbound':{'allow':['127.0.0.0/8']}}");
	scene_start(scene, 0);
	fire_call(scene, key.text, "listed", 200);
	scene_stop(scene, 0);
}

/* ---- how soon ---- */

static bool refused_on_all(struct scene *scene, int nodes, const char *key)
{
	bool all = true;

	for (int i = 0; i < nodes; i++)
		all &= ask(scene, i, "GET", "/api/v1/jobs", key, NULL)->status == 401;
	return all;
}

/* While all nodes are busy with that very key. */
static void assert_revoked_in_time(struct scene *scene, int nodes)
{
	struct key key;
	int64_t revoked_at_ms;

	make_key(scene, "--scope admin", &key);
	for (int i = 0; i < nodes; i++)
		assert_int_equal(ask(scene, i, "GET", "/api/v1/jobs", key.text, NULL)->status, 200);
	revoke_key(scene, &key);
	revoked_at_ms = await_now_ms();
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, refused_on_all(scene, nodes, key.text));
	print_message("# refused on %d nodes after %d ms\n", nodes, (int)(await_now_ms() - revoked_at_ms));
}

static void test_a_revoked_key_is_refused_soon(void **state)
{
	struct scene *scene = *state;

	scene_start(scene, 0);
	assert_revoked_in_time(scene, 1);
	scene_stop(scene, 0);
}

static void test_a_revoked_key_is_refused_soon_on_all_nodes(void **state)
{
	struct scene *scene = *state;

	scene_start(scene, 0);
	scene_start(scene, 1);
	assert_revoked_in_time(scene, 2);
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* ---- beside a busy server ---- */

#define WRITERS 4
#define KEYS_MADE 40

struct writer {
	pthread_t thread;
	struct client *client;
	_Atomic bool *stop;
	char fields[200];
	size_t created, other;
};

static void *write_on(void *context)
{
	struct writer *w = context;

	while (!atomic_load(w->stop)) {
		struct reply reply;

		if (client_call_with(w->client, "POST", "/api/v1/entities/doc", w->fields, "{}", 2, &reply) &&
		    reply.status == 201)
			w->created++;
		else
			w->other++;
		reply_release(&reply);
	}
	return NULL;
}

static void assert_whole(struct scene *scene, size_t created)
{
	char cell[64], arguments[1500], line[300];

	scene_sql(scene, "SELECT count(*) FROM hx_entity WHERE workspace = 'w'", cell, sizeof cell);
	assert_int_equal(strtoull(cell, NULL, 10), created);
	if (scene->store->kind == STORE_SQLITE_FILE) {
		scene_sql(scene, "PRAGMA integrity_check", cell, sizeof cell);
		assert_string_equal(cell, "ok");
	}
	snprintf(arguments, sizeof arguments, "audit --db '%s'", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 0);
}

/* Keys come and go in processes of their own while the lane commits and copies its log back: nobody loses anything. */
static void test_beside_a_busy_server(void **state)
{
	struct writer writers[WRITERS] = {0};
	struct scene *scene = *state;
	_Atomic bool stop = false;
	size_t created = 0, other = 0;
	struct key own;
	int64_t began_ms;

	scene_define(scene, "doc", doc);
	scene_configure(scene, "{'modules':{'papers':{'janitor':{'every':'1h','stuck_after':'1h'}}}}");
	scene_start(scene, 0);
	make_key(scene, "--scope execute --workspace w", &own);
	for (int i = 0; i < WRITERS; i++) {
		writers[i].client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
		writers[i].stop = &stop;
		snprintf(writers[i].fields, sizeof writers[i].fields, "X-API-Key: %s\r\n", own.text);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
	}
	began_ms = await_now_ms();
	for (int i = 0; i < KEYS_MADE; i++) {
		struct key key;

		make_key(scene, "--scope read", &key);
		must(scene, "GET", "/api/v1/jobs", key.text, NULL, 200);
		revoke_key(scene, &key);
	}
	print_message("# %d keys made, used and revoked: %d ms each\n", KEYS_MADE,
		      (int)(await_now_ms() - began_ms) / KEYS_MADE);
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		client_free(writers[i].client);
		created += writers[i].created;
		other += writers[i].other;
	}
	print_message("# %zu entities meanwhile\n", created);
	assert_int_equal(other, 0);
	assert_true(created > 0);
	scene_stop(scene, 0);
	assert_whole(scene, created);
}

/* ---- rows of the user's own table ---- */

static const char own[] = "{'workflow':'own','kind':'entity','meta':{'table':'papers'},'status_types':['draft','done'],"
			  "'initial_status':'draft','steps':[{'step_id':1,'step_key':'end','status':'draft',"
			  "'successful_state':'done'}]}";

/* They know no workspaces, so they are in one: the default one. */
static void test_a_table_of_ones_own_is_of_the_default_workspace(void **state)
{
	static const char *const paths[] = {"/api/v1/entities/own/1", "/api/v1/entities/own",
					    "/api/v1/why/entity:own:1", "/api/v1/history/entity:own:1"};
	struct scene *scene = *state;
	struct key inside, outside;

	scene_start(scene, 0); /* makes the schema */
	scene_stop(scene, 0);
	scene_sql(
		scene,
		scene->store->kind == STORE_POSTGRES
			? "CREATE TABLE papers (id bigint PRIMARY KEY, status text, version bigint, updated_at bigint)"
			: "CREATE TABLE papers (id INTEGER PRIMARY KEY, status TEXT, version INTEGER, updated_at INTEGER)",
		NULL, 0);
	scene_sql(scene, "INSERT INTO papers VALUES (1, 'draft', 1, 0)", NULL, 0);
	scene_define(scene, "own", own);
	scene_start(scene, 0);
	make_key(scene, "--scope admin", &inside);
	make_key(scene, "--scope admin --workspace w", &outside);
	must(scene, "POST", "/api/v1/entities/own/1/steps/end", outside.text, "{}", 404);
	must(scene, "POST", "/api/v1/entities/own/1/steps/end", inside.text, "{}", 200);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		must(scene, "GET", paths[i], outside.text, NULL, 404);
		must(scene, "GET", paths[i], inside.text, NULL, 200);
	}
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_how_a_key_is_sent),
		ON_SQLITE(test_idempotency_keys_do_not_cross),
		ON_POSTGRES(test_idempotency_keys_do_not_cross),
		ON_SQLITE(test_the_first_key_closes_the_door),
		ON_POSTGRES(test_the_first_key_closes_the_door),
		ON_SQLITE(test_beyond_loopback),
		ON_SQLITE(test_web_pages_of_elsewhere),
		ON_SQLITE(test_no_body_is_read_without_a_key),
		ON_SQLITE(test_loopback_is_out_of_reach_once_there_are_keys),
		ON_SQLITE(test_a_revoked_key_is_refused_soon),
		ON_POSTGRES(test_a_revoked_key_is_refused_soon_on_all_nodes),
		ON_SQLITE(test_beside_a_busy_server),
		ON_POSTGRES(test_beside_a_busy_server),
		ON_SQLITE(test_a_table_of_ones_own_is_of_the_default_workspace),
		ON_POSTGRES(test_a_table_of_ones_own_is_of_the_default_workspace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
