/*
 * What the gate does with which request: the configuration file, parsed and checked; every route with all of its
 * options resolved (its own, else the file's, else the default). Immutable.
 *
 * Routes are tried in order: METHOD SP PATTERN, where * matches any characters, against the path as it was sent. What no
 * route names: POST and PATCH are guarded with the file's own options, the other standard methods pass through, and an
 * unknown method (case counts) is nobody's.
 */
#pragma once

#include "base/log.h"
#include "gate/fingerprint.h"
#include "gate/replay.h"
#include "gate/scope.h"
#include "gate/source.h"
#include "model/findings.h"

#define GATE_ROUTES_MAX 500
#define GATE_LIST_MAX 32 /* names, pointers, statuses in one option */
#define GATE_KEY_PARTS_MAX 4
#define GATE_MATCH_BYTES_MAX 2048
#define GATE_KEY_LENGTH_MAX 1024
#define GATE_TUNNELS_MAX 100000
#define GATE_ADMIN_KEY_MIN 16
#define GATE_ADMIN_KEY_MAX 512
#define GATE_REQUEST_BYTES_MAX (INT64_C(1) << 30)
#define GATE_STORED_BYTES_MAX (INT64_C(16) << 20) /* what every store can take in one piece */

struct gate_policy {
	bool guard;
	bool required;
	const char *match; /* of its route; NULL: of none */
	size_t key_n;      /* 1, or the key is composed of so many parts */
	struct gate_source key[GATE_KEY_PARTS_MAX];
	size_t max_key_length;
	struct gate_fingerprint_rule fingerprint;
	bool scope_endpoint;
	size_t scope_n;
	struct gate_source scope[GATE_SCOPE_PARTS_MAX];
	struct gate_source tenant; /* of kind NONE: no tenants */
	bool any_caller;           /* callers are not compared */
	struct gate_source caller; /* of kind NONE: Authorization, else Cookie */
	int64_t ttl_ms, processing_ttl_ms, upstream_timeout_ms, read_timeout_ms;
	struct gate_replay_rule replay;
	bool status_headers;
	enum { GATE_CACHE_NONE, GATE_CACHE_4XX, GATE_CACHE_ALL, GATE_CACHE_LIST } cache_errors;
	size_t cache_list_n;
	const int *cache_list;
	bool hold; /* on_lost */
	size_t max_request_bytes, max_stored_bytes;
};

struct gate_route {
	struct slice method, pattern;
	struct gate_policy policy;
	size_t line;
};

struct gate_config {
	const char *file;
	const char *name; /* whose records these are: gates that share a store and a name are nodes of one gate */
	const char *upstream, *store, *listen, *admin; /* NULL: not set here */
	const char *admin_key;                         /* NULL: none is wanted. A secret */
	int64_t max_tunnels, tunnel_timeout_ms;        /* of requests with Upgrade; silent for so long: closed */
	int64_t sweep_every_ms;                        /* 0: off */
	int64_t store_timeout_ms;                      /* default 2s */
	int64_t drain_notice_ms;                       /* 0: none */
	enum log_level log_level;
	struct gate_policy policy; /* what no route names, if it is guarded */
	struct gate_policy pass;   /* and if it is not: the same with the guard off */
	size_t routes_n;
	const struct gate_route *routes;
};

/* Defaults only. */
void gate_config_init(struct gate_config *config);
/* All findings are added; *ret has what could be read and defaults for the rest. */
void gate_config_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct gate_config *ret_config);
/* The same from a file; one that cannot be read is an error too. */
void gate_config_load(const char *path, struct arena *arena, struct findings *findings, struct gate_config *ret_config);
/* Visible ASCII without spaces, GATE_ADMIN_KEY_MIN to _MAX of it: what can be sent in a header, and not be guessed. */
bool gate_admin_key_is_good(struct slice key);
/* The policy of a request, never NULL for a method that HTTP defines; NULL: the method is unknown (501). */
const struct gate_policy *gate_config_match(const struct gate_config *config, struct slice method, struct slice path);
/* Is an answer of this status kept? 2xx and 3xx are; errors by cache_errors; 429 and 503 never. */
bool gate_policy_stores(const struct gate_policy *policy, int status);
