/* See auth.h. Keys are known to the keyring (engine/keyring.h); most questions it answers at once. */
#include "api/auth.h"

#include <stdio.h>

#include "api/api.h"
#include "engine/keyring.h"
#include "serve/bearer.h"
#include "serve/local.h"
#include "wire/loop.h"

_Static_assert((int)ROUTE_READ == API_KEY_READ && (int)ROUTE_EXECUTE == API_KEY_EXECUTE &&
		       (int)ROUTE_ADMIN == API_KEY_ADMIN && (int)ROUTE_WORKER == API_KEY_WORKER,
	       "a route's scope is compared with a key's");

struct auth {
	struct keyring_question question;
	struct http_call *call;
	void (*go_on)(struct http_call *call);
};

/* ---- what was sent ---- */

/* More than one field of the name is as good as none that can be believed. */
static struct slice field_value(const struct http_call *call, const char *name, size_t *ret_n)
{
	const struct wire_field *field = wire_find(call->request->wire.head.fields, name, ret_n);

	return field ? field->value : slice_of(NULL, 0);
}

/* The value of our cookie; .n 0: there is none. */
static struct slice session_of(const struct http_call *call)
{
	size_t n;
	struct slice rest = field_value(call, "Cookie", &n);

	if (n > 1) /* HTTP/1.1 has one */
		return slice_of(NULL, 0);
	while (rest.n) {
		const char *end = memchr(rest.p, ';', rest.n);
		struct slice pair = slice_of(rest.p, end ? (size_t)(end - rest.p) : rest.n);

		if (slice_starts(pair, AUTH_COOKIE "="))
			return slice_from(pair, sizeof AUTH_COOKIE);
		rest = end ? slice_from(rest, pair.n + 1) : slice_of(NULL, 0);
		while (rest.n && rest.p[0] == ' ')
			rest = slice_from(rest, 1);
	}
	return rest;
}

/* ---- refusing ---- */

static bool auth_refuse(struct http_call *call, enum hx_code code, struct slice detail, struct wire_field field)
{
	atomic_fetch_add(&api_parts(call)->metrics->keys_refused, 1);
	http_respond_problem(call->exchange, &(struct problem){.code = code, .detail = detail, .field = field});
	return false;
}

static bool refuse_key(struct http_call *call, bool given)
{
	struct wire_field challenge = {
		slice_str("WWW-Authenticate"),
		slice_str(given ? "Bearer realm=\"hapax\", error=\"invalid_token\"" : "Bearer realm=\"hapax\""),
	};

	return auth_refuse(call, HX_UNAUTHENTICATED,
			   slice_str(given ? "this API key is not known, was revoked, or has expired"
					   : "send an API key: Authorization: Bearer hx_…"),
			   challenge);
}

static bool refuse_scope(struct http_call *call, enum api_key_scope scope)
{
	char detail[120];

	snprintf(detail, sizeof detail, "this key's scope is %s, and this call needs %s", api_key_scope_name(scope),
		 api_key_scope_name((enum api_key_scope)call->route->scope));
	return auth_refuse(call, HX_FORBIDDEN, slice_str(detail), (struct wire_field){0});
}

/* ---- who it is ---- */

static struct slice or_default(struct slice value)
{
	return value.n ? value : slice_str("default");
}

/* A header may repeat what the key says. Another name is a mistake that must not act on the key's instead. */
static bool claims_only(struct http_call *call, const char *name, struct slice own)
{
	size_t n;
	struct slice claimed = field_value(call, name, &n);
	char detail[120];

	if (!claimed.n || slice_eq(claimed, own))
		return true;
	snprintf(detail, sizeof detail, "%s is another than this key's: leave it out", name);
	return auth_refuse(call, HX_FORBIDDEN, slice_str(detail), (struct wire_field){0});
}

static bool admit_key(struct http_call *call, const struct keyring_question *question)
{
	const char *foreign = question->is_session ? own_page_refusal(&call->request->wire) : NULL;

	if (foreign)
		return auth_refuse(call, HX_FORBIDDEN, slice_str(foreign), (struct wire_field){0});
	if (call->route->scope != ROUTE_PUBLIC && !api_key_may(question->scope, (enum api_key_scope)call->route->scope))
		return refuse_scope(call, question->scope);
	call->scope = (enum route_scope)question->scope;
	call->workspace = question->workspace;
	call->requester = question->requester;
	return claims_only(call, "Hapax-Workspace", call->workspace) &&
	       claims_only(call, "Hapax-Requester", call->requester);
}

static bool admit_anybody(struct http_call *call)
{
	const char *foreign = local_refusal(&call->request->wire);
	size_t n;

	if (!api_of(call)->loopback)
		return refuse_key(call, /* given= */ false);
	if (foreign)
		return auth_refuse(call, HX_FORBIDDEN, slice_str(foreign), (struct wire_field){0});
	call->scope = ROUTE_ADMIN;
	call->workspace = or_default(field_value(call, "Hapax-Workspace", &n));
	call->requester = or_default(field_value(call, "Hapax-Requester", &n));
	return true;
}

static bool auth_decide(struct auth *auth)
{
	const struct keyring_question *question = &auth->question;

	switch (question->code) {
	case HX_OK:
		return question->open ? admit_anybody(auth->call) : admit_key(auth->call, question);
	case HX_UNAUTHENTICATED:
		return refuse_key(auth->call, question->key.n > 0);
	default:
		http_respond_code(auth->call->exchange, question->code, /* detail= */ NULL);
		return false;
	}
}

/* ---- asking ---- */

static void resumed(struct http_exchange *exchange, void *data)
{
	struct auth *auth = data;

	(void)exchange;
	if (auth_decide(auth))
		auth->go_on(auth->call);
}

/* In the keyring's thread. */
static void auth_answered(struct keyring_question *question)
{
	struct auth *auth = CONTAINER_OF(question, struct auth, question);

	if (!http_resume(auth->call->exchange, resumed, auth))
		http_respond_code(auth->call->exchange, HX_STOPPING, /* detail= */ NULL);
}

bool auth_admit(struct http_call *call, void (*go_on)(struct http_call *call))
{
	struct auth *auth = arena_zalloc(call->arena, sizeof *auth);
	struct slice key;

	if (!auth)
		return api_refuse(call, HX_BUSY, /* detail= */ NULL);
	if (!bearer_key(call->request->wire.head.fields, &key))
		return refuse_key(call, /* given= */ true);
	auth->call = call;
	auth->go_on = go_on;
	auth->question.is_session = !key.n && session_of(call).n;
	auth->question.key = key.n ? key : session_of(call);
	auth->question.arena = call->arena;
	auth->question.last_known_will_do = call->route->handle == api_metrics; /* wanted most when the store is gone */
	auth->question.store_lost = !sentinel_sees_store(api_parts(call)->sentinel);
	auth->question.answered = auth_answered;
	return keyring_ask(api_parts(call)->keyring, &auth->question) && auth_decide(auth);
}
