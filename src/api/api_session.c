/* See api_dashboard.h. Whoever comes here was admitted (auth.h): by a key, by a session, or because there are no keys. */
#include <stdio.h>

#include "api/api.h"
#include "api/api_dashboard.h"
#include "api/auth.h"
#include "base/json_write.h"
#include "engine/keyring.h"
#include "serve/bearer.h"
#include "serve/local.h"

#define COOKIE_BYTES 256

static void session_answer(struct http_call *call, const char *cookie)
{
	struct wire_field fields[] = {
		{slice_str("Content-Type"), slice_str("application/json")},
		{slice_str("Cache-Control"), slice_str("no-store")},
		{slice_str("X-Content-Type-Options"), slice_str("nosniff")},
		{slice_str("Set-Cookie"), slice_str(cookie)},
	};
	size_t n = sizeof fields / sizeof *fields;
	bool open = !keyring_has_keys(api_parts(call)->keyring);

	LOCAL_STRBUF(text, 8192);
	strbuf_add_char(&text, '{');
	json_more_text(&text, "workspace", api_workspace(call));
	json_more_text(&text, "requester", api_requester(call));
	json_more_text(&text, "scope", slice_str(api_key_scope_name((enum api_key_scope)call->scope)));
	json_more_bool(&text, "open", open);
	json_more_text(&text, "version", slice_str(HX_VERSION));
	json_more_text(&text, "node", slice_str(engine_options_of(api_of(call)->engine)->node));
	strbuf_add_char(&text, '}');
	http_respond(call->exchange, &(struct http_answer){.status = 200,
							   .fields = {fields, *cookie ? n : n - 1},
							   .body = strbuf_slice(&text)});
}

/* TLS ends in front of us, or nobody but this machine hears us. */
static const char *secure_words(const struct http_call *call)
{
	return !api_of(call)->loopback ||
			       wire_has_token(call->request->wire.head.fields, "X-Forwarded-Proto", slice_str("https"))
		       ? "; Secure"
		       : "";
}

void api_session_show(struct http_call *call)
{
	session_answer(call, "");
}

/* Another page must not log anybody in, either: what is done then would be done in its name. */
static bool is_own_page(struct http_call *call)
{
	struct wire_fields fields = call->request->wire.head.fields;
	size_t origins, sites;
	bool browser = wire_find(fields, "Origin", &origins) || wire_find(fields, "Sec-Fetch-Site", &sites);
	const char *foreign = browser ? own_page_refusal(&call->request->wire) : NULL;

	return !foreign || api_refuse(call, HX_FORBIDDEN, foreign);
}

void api_session_begin(struct http_call *call)
{
	char text[SESSION_TEXT_CHARS + 1], cookie[COOKIE_BYTES] = "";
	struct slice key = {0};

	if (!is_own_page(call))
		return;
	if (bearer_key(call->request->wire.head.fields, &key) && key.n) {
		keyring_session(api_parts(call)->keyring, key, text);
		snprintf(cookie, sizeof cookie, AUTH_COOKIE "=%s; HttpOnly; SameSite=Strict; Max-Age=%d%s", text,
			 SESSION_MS / 1000, secure_words(call));
	}
	session_answer(call, cookie);
}

void api_session_end(struct http_call *call)
{
	char cookie[COOKIE_BYTES];

	if (!is_own_page(call))
		return;
	snprintf(cookie, sizeof cookie, AUTH_COOKIE "=; HttpOnly; SameSite=Strict; Max-Age=0%s", secure_words(call));
	session_answer(call, cookie);
}
