/* The url of a Redis server. See redis.h; strict, because what is misread here is a password sent to a stranger. */
#include <arpa/inet.h>
#include <stdio.h>

#include "gate/redis.h"

#define SCHEME "redis://"

static enum hx_code wrong(struct hx_error *err, const char *what)
{
	return error_set(err, HX_CONFIG_ERROR, "redis: %s; it is written redis://[:password@]host:port/db", what);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX. False: it is too long, holds a NUL, or something that has to be escaped and is not. */
static bool decode(struct slice text, char ret_text[REDIS_SECRET_BYTES_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '%') {
			int high = i + 2 < text.n ? hex_digit(text.p[i + 1]) : -1;
			int low = i + 2 < text.n ? hex_digit(text.p[i + 2]) : -1;

			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return false;
			c = (unsigned char)(high << 4 | low);
			i += 2;
		} else if (c <= ' ' || c >= 0x7f || strchr("@:/?#[]", c)) {
			return false;
		}
		if (n == REDIS_SECRET_BYTES_MAX)
			return false;
		ret_text[n++] = (char)c;
	}
	ret_text[n] = '\0';
	return true;
}

static bool parse_credentials(struct slice text, struct redis_url *url)
{
	const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
	size_t user_n = colon ? (size_t)(colon - text.p) : 0;

	return colon && decode(slice_of(text.p, user_n), url->user) &&
	       decode(slice_of(colon + 1, text.n - user_n - 1), url->password) && url->password[0] != '\0';
}

/* Decimal digits only, without leading zeros. */
static bool parse_number(struct slice text, long max, long *ret_number)
{
	long number = 0;

	if (text.n == 0 || (text.n > 1 && text.p[0] == '0'))
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || number > max)
			return false;
		number = number * 10 + (text.p[i] - '0');
	}
	*ret_number = number;
	return number <= max;
}

static bool is_host_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
	       c == '_';
}

static bool parse_name(struct slice text, struct redis_url *url)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_host_character(text.p[i]))
			return false;
	snprintf(url->host, sizeof url->host, "%.*s", SLICE_ARGS(text));
	return text.n > 0 && text.n < sizeof url->host;
}

/* "[::1]", and what is behind the bracket. */
static bool parse_ipv6(struct slice text, struct redis_url *url, struct slice *ret_rest)
{
	const char *end = memchr(text.p, ']', text.n);
	unsigned char address[16];
	int n = end ? (int)(end - text.p) - 1 : 0;

	if (n <= 0 || n > 45)
		return false;
	snprintf(url->host, sizeof url->host, "%.*s", n, text.p + 1);
	*ret_rest = slice_of(end + 1, text.n - (size_t)n - 2);
	return inet_pton(AF_INET6, url->host, address) == 1;
}

static enum hx_code parse_host(struct slice text, struct redis_url *url, struct hx_error *err)
{
	const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
	struct slice name = slice_of(text.p, colon ? (size_t)(colon - text.p) : text.n);
	struct slice rest = slice_of(colon, text.n - name.n);
	long port = 6379;
	bool good = text.n && text.p[0] == '[' ? parse_ipv6(text, url, &rest) : parse_name(name, url);

	if (!good)
		return wrong(err, "the url has no host that can be read");
	if (rest.n && (rest.p[0] != ':' || !parse_number(slice_of(rest.p + 1, rest.n - 1), 65535, &port) || port == 0))
		return wrong(err, "the port in the url is not a number from 1 to 65535");
	snprintf(url->port, sizeof url->port, "%ld", port);
	return HX_OK;
}

enum hx_code redis_url_parse(const char *text, struct redis_url *ret_url, struct hx_error *err)
{
	struct redis_url url = {.db = 0};
	struct slice rest = slice_str(text), place;
	const char *at, *slash;
	long db = 0;
	enum hx_code code;

	if (strncmp(text, "rediss://", 9) == 0)
		return wrong(err, "rediss: TLS to Redis is not supported, put a TLS tunnel in front of it");
	if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
		return wrong(err, "the url does not begin with redis://");
	if (rest.n > REDIS_URL_BYTES_MAX)
		return wrong(err, "the url is too long");
	rest = slice_of(rest.p + strlen(SCHEME), rest.n - strlen(SCHEME));

	/* The last @ of all ends the credentials, so that no part of a carelessly written password is taken for a host. */
	at = memrchr(rest.p, '@', rest.n);
	place = at ? slice_of(at + 1, rest.n - (size_t)(at - rest.p) - 1) : rest;
	if (at && !parse_credentials(slice_of(rest.p, (size_t)(at - rest.p)), &url))
		return wrong(err,
			     "the password in the url cannot be read (characters like @ : / % are written as %XX)");
	slash = place.n ? memchr(place.p, '/', place.n) : NULL;
	if (slash && !parse_number(slice_of(slash + 1, place.n - (size_t)(slash - place.p) - 1), REDIS_DB_MAX, &db) &&
	    slash + 1 != place.p + place.n)
		return wrong(err, "the database in the url is not a number");
	url.db = (int)db;
	code = parse_host(slice_of(place.p, slash ? (size_t)(slash - place.p) : place.n), &url, err);
	if (!code)
		*ret_url = url;
	return code;
}
