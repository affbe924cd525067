/* See local.h. */
#include "serve/local.h"

#include <stdio.h>

#include "wire/address.h"
#include "wire/charset.h"

static bool is_loopback_with(struct slice host, const char *port)
{
	char text[ADDRESS_TEXT_BYTES];
	struct hx_error unused;
	struct address address;
	int n = snprintf(text, sizeof text, "%.*s%s", SLICE_ARGS(host), port);

	return n < (int)sizeof text && !address_parse(text, &unused, &address) && address_is_loopback(&address);
}

/* With its port or without, the name in any case. */
static bool is_loopback(struct slice host)
{
	if (slice_is_nocase(host, "localhost") || slice_starts_nocase(host, "localhost:"))
		return true; /* whatever the port is, the name is ours */
	return is_loopback_with(host, "") || is_loopback_with(host, ":80");
}

/* Whose page it is that a browser asks for. */
static bool is_origin_elsewhere(struct wire_fields fields)
{
	size_t n;
	const struct wire_field *field = wire_find(fields, "Origin", &n);

	if (!field)
		return false;
	if (slice_starts(field->value, "https://"))
		return n > 1 || !is_loopback(slice_from(field->value, strlen("https://")));
	return n > 1 || !slice_starts(field->value, "http://") ||
	       !is_loopback(slice_from(field->value, strlen("http://")));
}

const char *local_refusal(const struct wire_request *request)
{
	struct wire_fields fields = request->head.fields;

	if (request->host.n && !is_loopback(request->host))
		return "Host is not this machine: without a key only localhost, 127.0.0.1 and [::1] are served";
	if (is_origin_elsewhere(fields) || wire_has_token(fields, "Sec-Fetch-Site", slice_str("cross-site")))
		return "a web page of elsewhere asks (Origin, Sec-Fetch-Site): without a key only this machine is served";
	return NULL;
}

static bool is_read(const struct wire_request *request)
{
	return slice_is(request->method, "GET") || slice_is(request->method, "HEAD");
}

/* Origin is "scheme://" and what Host says. */
static bool is_origin_own(const struct wire_request *request)
{
	size_t n;
	const struct wire_field *field = wire_find(request->head.fields, "Origin", &n);
	size_t scheme;

	if (!field)
		return is_read(request);
	scheme = slice_starts(field->value, "https://") ? strlen("https://") : strlen("http://");
	if (n > 1 || !request->host.n ||
	    (!slice_starts(field->value, "https://") && !slice_starts(field->value, "http://")))
		return false;
	return slice_eq_nocase(slice_from(field->value, scheme), request->host);
}

const char *own_page_refusal(const struct wire_request *request)
{
	size_t n;
	const struct wire_field *site = wire_find(request->head.fields, "Sec-Fetch-Site", &n);
	bool own = !site ? is_origin_own(request)
			 : n == 1 && (slice_is(site->value, "same-origin") ||
				      (slice_is(site->value, "none") && is_read(request)));

	return own ? NULL : "another page asks with the session of this one (Origin, Sec-Fetch-Site)";
}
