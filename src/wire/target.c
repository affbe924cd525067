/* See target.h. */
#include "wire/target.h"

#include "base/digits.h"
#include "wire/charset.h"

#define PORT_MAX 65535u
#define IPV6_TEXT_MAX 45 /* with an IPv4 address in its last 32 bits */

static bool port_valid(struct slice port)
{
	uint64_t value;

	return port.n <= 5 && digits_number(port, PORT_MAX, &value);
}

/* What is between the brackets. Who listens there decides what it means; here only foreign characters are kept out. */
static bool ipv6_valid(struct slice text)
{
	if (text.n < 2 || text.n > IPV6_TEXT_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!char_is(text.p[i], CHAR_HEX) && text.p[i] != ':' && text.p[i] != '.')
			return false;
	return memchr(text.p, ':', text.n) != NULL;
}

bool host_valid(struct slice host)
{
	size_t name = 0;

	if (host.n > 0 && host.p[0] == '[') {
		const char *end = memchr(host.p, ']', host.n);

		if (!end || !ipv6_valid(slice_of(host.p + 1, (size_t)(end - host.p) - 1)))
			return false;
		name = (size_t)(end - host.p) + 1;
	} else {
		while (name < host.n && char_is(host.p[name], CHAR_HOST))
			name++;
		if (name == 0)
			return false;
	}
	if (name == host.n)
		return true;
	return host.p[name] == ':' && port_valid(slice_of(host.p + name + 1, host.n - name - 1));
}

/* Returns the place after the path, or NULL if there is a "%" without its two digits. */
static const char *path_end(const char *p, const char *end)
{
	for (; p < end && char_is(*p, CHAR_PATH); p++) {
		if (*p != '%')
			continue;
		if (end - p < 3 || !char_is(p[1], CHAR_HEX) || !char_is(p[2], CHAR_HEX))
			return NULL;
		p += 2;
	}
	return p;
}

static const char *path_and_query(struct wire_request *request, struct slice text)
{
	const char *end = text.p + text.n;
	const char *p = path_end(text.p, end);

	if (!p)
		return "the path has an incomplete percent escape";
	request->path = slice_of(text.p, (size_t)(p - text.p));
	if (p < end && *p == '?') {
		request->has_query = true;
		request->query = slice_of(p + 1, (size_t)(end - p) - 1);
		while (p < end && char_is(*p, CHAR_QUERY))
			p++;
	}
	if (p == end)
		return NULL;
	return *p == '#' ? "the request target has a fragment" : "the request target has a byte that is not allowed";
}

/* What follows "http://" or "https://". */
static const char *absolute_form(struct wire_request *request, struct slice text)
{
	size_t n = 0;

	while (n < text.n && text.p[n] != '/' && text.p[n] != '?' && text.p[n] != '#')
		n++;
	request->form = WIRE_ABSOLUTE;
	request->host = slice_of(text.p, n);
	if (!host_valid(request->host))
		return "the request target has no valid host";

	const char *wrong = path_and_query(request, slice_of(text.p + n, text.n - n));

	if (!wrong && request->path.n == 0)
		request->path = slice_str("/");
	return wrong;
}

const char *target_parse(struct wire_request *request)
{
	struct slice rest = request->target;

	request->form = WIRE_ORIGIN;
	request->has_query = false;
	request->query = slice_of(NULL, 0);
	if (rest.n > 0 && rest.p[0] == '/')
		return path_and_query(request, rest);
	if (slice_is(rest, "*")) {
		request->form = WIRE_ASTERISK;
		request->path = rest;
		return slice_is(request->method, "OPTIONS") ? NULL : "the target * is for OPTIONS alone";
	}
	if (slice_starts_nocase(rest, "http://"))
		return absolute_form(request, slice_from(rest, strlen("http://")));
	if (slice_starts_nocase(rest, "https://"))
		return absolute_form(request, slice_from(rest, strlen("https://")));
	return "the request target is neither a path nor an http URL";
}
