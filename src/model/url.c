/* See url.h. Takes the text apart from left to right: scheme, authority (host, port), the rest. */
#include "model/url.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/excerpt.h"

static bool skip_scheme(struct slice *rest, const char *scheme)
{
	size_t n = strlen(scheme);

	if (rest->n < n || strncasecmp(rest->p, scheme, n) != 0)
		return false;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

static size_t length_until(struct slice text, const char *stops)
{
	size_t n = 0;

	while (n < text.n && !strchr(stops, text.p[n]))
		n++;
	return n;
}

static bool is_port(struct slice text)
{
	unsigned port = 0;

	if (text.n == 0 || text.n > 5)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		port = port * 10 + (unsigned)(text.p[i] - '0');
	}
	return port >= 1 && port <= 65535;
}

static bool is_host_name(struct slice host)
{
	if (host.n == 0 || host.n > 253 || host.p[0] == '.' || host.p[0] == '-')
		return false;
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
		      c == '-' || c == '_'))
			return false;
		if (c == '.' && i + 1 < host.n && host.p[i + 1] == '.')
			return false;
	}
	return true;
}

static bool is_ipv6(struct slice host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (host.n >= sizeof text)
		return false;
	memcpy(text, host.p, host.n);
	text[host.n] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

/* "name", "name:80", "[::1]", "[::1]:80" */
static const char *fault_of_authority(struct slice authority)
{
	bool bracketed = authority.n > 0 && authority.p[0] == '[';
	size_t host_n = length_until(authority, bracketed ? "]" : ":");
	struct slice host = slice_of(authority.p, host_n);
	size_t after = host_n + bracketed;

	if (memchr(authority.p, '@', authority.n))
		return "has credentials in it; send them in a header";
	if (bracketed && (host_n == authority.n || !is_ipv6(slice_of(host.p + 1, host_n - 1))))
		return "has no IPv6 address between its brackets";
	if (!bracketed && !is_host_name(host))
		return "has no host, or one that is not valid";
	if (after == authority.n)
		return NULL;
	if (authority.p[after] != ':' || !is_port(slice_of(authority.p + after + 1, authority.n - after - 1)))
		return "has a port that is not a number from 1 to 65535";
	return NULL;
}

static const char *fault_of(struct slice url)
{
	struct slice rest = url;

	if (url.n > URL_BYTES_MAX)
		return "is too long; at most 2048 bytes";
	for (size_t i = 0; i < url.n; i++)
		if (url.p[i] <= 0x20 || url.p[i] >= 0x7f)
			return "has a character that an address cannot have; escape it as %XX";
	if (memchr(url.p, '#', url.n))
		return "has a fragment, which is never sent";
	if (!skip_scheme(&rest, "http://") && !skip_scheme(&rest, "https://"))
		return "must begin with http:// or https://";
	return fault_of_authority(slice_of(rest.p, length_until(rest, "/?")));
}

enum hx_code url_check(struct slice url, struct hx_error *err)
{
	const char *fault = url.n ? fault_of(url) : "must begin with http:// or https://";

	if (fault)
		return error_set(err, HX_VALIDATION_ERROR, "\"%s\" %s", excerpt_of(url).text, fault);
	return HX_OK;
}
