/*
 * A hook, as the configuration declares it: whose signature is believed, what names the event, and what is done with it.
 * Immutable.
 */
#pragma once

#include "model/expression.h"

#define HOOKS_MAX 200
#define HOOK_SECRETS_MAX 8
#define HOOK_TEXT_BYTES_MAX 1024

enum hook_scheme { HOOK_STRIPE, HOOK_GITHUB, HOOK_STANDARD, HOOK_HMAC };
enum hook_does { HOOK_SIGNALS, HOOK_STARTS, HOOK_FIRES, HOOK_PUSHES };

struct hook_config {
	const char *name;
	size_t line;
	/* verify */
	enum hook_scheme scheme;
	size_t secrets_n;
	const char *secrets[HOOK_SECRETS_MAX]; /* as they are written: ${env:NAME} is filled in at the start */
	int64_t window_ms;                     /* of a scheme that signs its time; default 5m */
	const char *header;                    /* of hmac-sha256: where the signature is; default X-Signature */
	/* which event it is */
	const char *id_pointer; /* in the body; NULL: a header has it */
	const char *id_header;
	int64_t keep_ms; /* default 7d */
	const char *workspace, *requester;
	const struct expression *when; /* NULL: always */
	/* what is done: expressions are over the body; NULL: none */
	enum hook_does does;
	const char *workflow, *event, *step, *queue;
	const struct expression *key, *entity, *data; /* data: of the event, the input, the payload */
	bool start;                                   /* a signal makes the run that is not there */
	const struct expression *input;               /* of that run */
	int64_t priority;
};

/* Is the id part of what is signed? Where it is not, a body that was seen before is a duplicate under any id. */
bool hook_id_is_signed(const struct hook_config *hook);

struct reader;
struct json_node;
/* The member `hooks` of a configuration. */
void hooks_read(const struct reader *r, const struct json_node *node, struct hook_config **ret_hooks, size_t *ret_n);
