/* See gate_process.h. */
#include "support/gate_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"

#define VALUE_BYTES 200

static void choose_store(struct gates *gates, enum gates_store store)
{
	const char *redis = getenv("HAPAX_TEST_REDIS");

	if (store == GATES_REDIS && !redis)
		fail_msg("HAPAX_TEST_REDIS is not set: run this through tests/with-redis (make test does)");
	if (store == GATES_SQLITE || store == GATES_POSTGRES)
		gates->store = store_new(store == GATES_SQLITE ? STORE_SQLITE_FILE : STORE_POSTGRES);
	snprintf(gates->url, sizeof gates->url, "%s",
		 gates->store           ? gates->store->url
		 : store == GATES_REDIS ? redis
					: "memory:");
}

static void write_config(struct gates *gates, const char *config)
{
	const char *tmp = getenv("TMPDIR");
	FILE *file;

	snprintf(gates->dir, sizeof gates->dir, "%s/hapax-gate.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(gates->dir));
	snprintf(gates->config, sizeof gates->config, "%s/gate.json", gates->dir);
	for (size_t i = 0; i < GATES_MAX; i++)
		snprintf(gates->log[i], sizeof gates->log[i], "%s/log.%zu", gates->dir, i);
	file = fopen(gates->config, "w");
	assert_non_null(file);
	for (; *config; config++)
		fputc(*config == '\'' ? '"' : *config, file);
	assert_int_equal(fclose(file), 0);
}

void gates_start(struct gates *gates, size_t i)
{
	struct serve_options options = {
		.db_url = gates->url, .config = gates->config, .upstream = gates->upstream, .log = gates->log[i]};

	serve_free(gates->gate[i]);
	gates->gate[i] = NULL;
	gates->gate[i] = serve_start(&options);
}

struct gates *gates_new(enum gates_store store, size_t n, const char *config)
{
	struct gates *gates = calloc(1, sizeof *gates);

	assert_non_null(gates);
	assert_true(n >= 1 && n <= GATES_MAX);
	gates->n = n;
	snprintf(gates->salt, sizeof gates->salt, "%x-%llx", (unsigned)getpid(), (unsigned long long)await_now_ms());
	choose_store(gates, store);
	write_config(gates, config);
	gates->service = service_new();
	snprintf(gates->upstream, sizeof gates->upstream, "http://127.0.0.1:%d", service_port(gates->service));
	for (size_t i = 0; i < n; i++)
		gates_start(gates, i);
	return gates;
}

void gates_free(struct gates *gates)
{
	if (!gates)
		return;
	for (size_t i = 0; i < GATES_MAX; i++) {
		serve_free(gates->gate[i]);
		unlink(gates->log[i]);
	}
	service_free(gates->service);
	unlink(gates->config);
	rmdir(gates->dir);
	store_free(gates->store);
	free(gates);
}

const char *gates_store_name(enum gates_store store)
{
	static const char *const names[] = {"memory", "SQLite", "PostgreSQL", "Redis"};

	return names[store];
}

void gates_key(const struct gates *gates, char ret_key[GATE_KEY_BYTES], const char *format, ...)
{
	int n = snprintf(ret_key, GATE_KEY_BYTES, "%s-", gates->salt);
	va_list args;

	va_start(args, format);
	vsnprintf(ret_key + n, GATE_KEY_BYTES - (size_t)n, format, args);
	va_end(args);
}

bool gate_post(struct client *client, const char *path, const char *key, const char *body, struct reply *ret_reply)
{
	char fields[GATE_KEY_BYTES + 100];

	snprintf(fields, sizeof fields, "Content-Type: application/json\r\nIdempotency-Key: \"%s\"\r\n", key);
	return client_call_with(client, "POST", path, fields, body, strlen(body), ret_reply);
}

/* The value of a field into text; empty: there is none. */
static void field_of(const struct reply *reply, const char *name, char ret_text[VALUE_BYTES])
{
	char start[64];
	const char *at;

	snprintf(start, sizeof start, "\r\n%s: ", name);
	at = strcasestr(reply->head, start);
	at = at ? at + strlen(start) : "";
	snprintf(ret_text, VALUE_BYTES, "%.*s", (int)strcspn(at, "\r"), at);
}

bool reply_is(const struct reply *reply, int status, const char *marker)
{
	char found[VALUE_BYTES], replayed[VALUE_BYTES];
	bool is_replay = marker && strcmp(marker, "replayed") == 0;

	field_of(reply, "Idempotency-Status", found);
	field_of(reply, "Idempotency-Replayed", replayed);
	return reply->status == status && strcmp(found, marker ? marker : "") == 0 &&
	       strcmp(replayed, is_replay ? "true" : "") == 0;
}

bool reply_same(const struct reply *one, const struct reply *other)
{
	char type[VALUE_BYTES], other_type[VALUE_BYTES];

	field_of(one, "Content-Type", type);
	field_of(other, "Content-Type", other_type);
	return one->status == other->status && strcmp(type, other_type) == 0 && one->body && other->body &&
	       one->body_n == other->body_n && memcmp(one->body, other->body, one->body_n) == 0;
}
