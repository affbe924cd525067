/*
 * Real `hapax gate` processes: one or two of them on one fresh store, in front of one service (service.h), and what a
 * client says to them and hears from them.
 *
 *	struct gates *gates = gates_new(GATES_POSTGRES, 2, "{'processing_ttl': '1s'}");
 *	struct client *client = client_new(gates->gate[1]->port, NULL);
 *	gate_post(client, "/payments", key, body, &reply);
 *	if (!reply_is(&reply, 201, "created")) …
 *
 * All of it fails the running test, so: from its thread. The exceptions are gate_post(), reply_is() and reply_same().
 */
#ifndef HX_TESTS_SUPPORT_GATE_PROCESS_H
#define HX_TESTS_SUPPORT_GATE_PROCESS_H

#include "support/client.h"
#include "support/serve.h"
#include "support/service.h"
#include "support/store.h"

#define GATES_MAX 2
#define GATE_KEY_BYTES 80

enum gates_store { GATES_MEMORY, GATES_SQLITE, GATES_POSTGRES, GATES_REDIS };

struct gates {
	struct service *service;
	struct serve *gate[GATES_MAX];
	size_t n;
	/* private */
	struct store *store; /* NULL: memory, Redis */
	char url[512], upstream[64], dir[256], config[300], log[GATES_MAX][300];
	char salt[32]; /* of the keys, since Redis has seen others */
};

/* All of them are ready. The configuration with ' for ". Two gates need a store that both see. */
struct gates *gates_new(enum gates_store store, size_t n, const char *config);
/* Kills what still runs. Takes NULL. */
void gates_free(struct gates *gates);
/* A gate that has ended, once more: the same store, the same configuration, another port. */
void gates_start(struct gates *gates, size_t i);
const char *gates_store_name(enum gates_store store);
/* A key that no other test has used. */
void gates_key(const struct gates *gates, char ret_key[GATE_KEY_BYTES], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A POST of JSON with this key. False: there was no answer, or not all of it. */
bool gate_post(struct client *client, const char *path, const char *key, const char *body, struct reply *ret_reply);
/* Its status, and its Idempotency-Status; NULL: it must have none. */
bool reply_is(const struct reply *reply, int status, const char *marker);
/* A replay has to be the first answer again: status, type and bytes. */
bool reply_same(const struct reply *one, const struct reply *other);

#endif
