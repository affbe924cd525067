/* The url of a Redis server. See redis.h; strict, because what is misread here is a password sent to a stranger. */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/digits.h"
#include "gate/redis.h"

static const struct {
	const char *text;
	enum redis_kind kind;
	bool tls;
} schemes[] = {
	{"redis://", REDIS_TCP, false},
	{"rediss://", REDIS_TCP, true},
	{"redis+unix://", REDIS_UNIX, false},
	{"redis+sentinel://", REDIS_SENTINEL, false},
	{"rediss+sentinel://", REDIS_SENTINEL, true},
};

static enum hx_code wrong(struct hx_error *err, const char *what)
{
	return error_set(err, HX_CONFIG_ERROR, "redis: %s; it is written redis://[:password@]host:port/db", what);
}

bool redis_url_is(const char *text)
{
	return strncmp(text, "redis", 5) == 0;
}

/* ---- pieces ---- */

/* Decodes %XX into a buffer of this size. False: it is too long, holds a NUL, or something of `bad` that is not escaped. */
static bool redis_url_decode(struct slice text, const char *bad, char *ret_text, size_t size)
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
		} else if (c <= ' ' || c >= 0x7f || strchr(bad, c)) {
			return false;
		}
		if (n == size - 1)
			return false;
		ret_text[n++] = (char)c;
	}
	ret_text[n] = '\0';
	return true;
}

#define SECRET_BAD "@:/?#[]"
#define VALUE_BAD "&=?#@"

static bool parse_credentials(struct slice text, struct redis_url *url)
{
	struct slice password = text, user = slice_cut(&password, ':');

	return redis_url_decode(user, SECRET_BAD, url->user, sizeof url->user) &&
	       redis_url_decode(password, SECRET_BAD, url->password, sizeof url->password) && url->password[0] != '\0';
}

/* Decimal digits only, without leading zeros. */
static bool parse_number(struct slice text, uint64_t max, uint64_t *ret_number)
{
	return (text.n == 1 || !slice_starts(text, "0")) && digits_number(text, max, ret_number);
}

static enum hx_code parse_db(struct slice text, struct redis_url *url, struct hx_error *err)
{
	uint64_t db = 0;

	if (text.n > 0 && !parse_number(text, REDIS_DB_MAX, &db))
		return wrong(err, "the database in the url is not a number");
	url->db = (int)db;
	return HX_OK;
}

/* ---- where ---- */

static bool is_host_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
	       c == '_';
}

static bool parse_name(struct slice text, struct redis_place *place)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_host_character(text.p[i]))
			return false;
	snprintf(place->host, sizeof place->host, "%.*s", SLICE_ARGS(text));
	return text.n > 0 && text.n < sizeof place->host;
}

/* "[::1]", and what is after the bracket. */
static bool parse_ipv6(struct slice text, struct redis_place *place, struct slice *ret_rest)
{
	const char *end = memchr(text.p, ']', text.n);
	unsigned char address[16];
	int n = end ? (int)(end - text.p) - 1 : 0;

	if (n <= 0 || n > 45)
		return false;
	snprintf(place->host, sizeof place->host, "%.*s", n, text.p + 1);
	*ret_rest = slice_of(end + 1, text.n - (size_t)n - 2);
	return inet_pton(AF_INET6, place->host, address) == 1;
}

static enum hx_code parse_place(struct slice text, uint64_t port, struct redis_place *place, struct hx_error *err)
{
	const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
	struct slice name = slice_of(text.p, colon ? (size_t)(colon - text.p) : text.n);
	struct slice rest = slice_of(colon, text.n - name.n);
	bool good = text.n && text.p[0] == '[' ? parse_ipv6(text, place, &rest) : parse_name(name, place);

	if (!good)
		return wrong(err, "the url has no host that can be read");
	if (rest.n && (rest.p[0] != ':' || !parse_number(slice_of(rest.p + 1, rest.n - 1), 65535, &port) || port == 0))
		return wrong(err, "the port in the url is not a number from 1 to 65535");
	snprintf(place->port, sizeof place->port, "%u", (unsigned)port);
	return HX_OK;
}

static enum hx_code parse_tcp(struct slice place, struct redis_url *url, struct hx_error *err)
{
	struct slice rest = place, host = slice_cut(&rest, '/');
	enum hx_code code = parse_db(rest, url, err);

	return code ? code : parse_place(host, 6379, &url->at, err);
}

static enum hx_code parse_unix(struct slice place, struct redis_url *url, struct hx_error *err)
{
	if (place.n == 0 || place.p[0] != '/' || !redis_url_decode(place, "?#", url->path, sizeof url->path))
		return wrong(err,
			     "the path of the socket in the url cannot be read (redis+unix:///run/redis.sock?db=0)");
	return HX_OK;
}

/* host[:port],…/name[/db] */
static enum hx_code parse_sentinels(struct slice place, struct redis_url *url, struct hx_error *err)
{
	struct slice rest = place, hosts = slice_cut(&rest, '/'), name = slice_cut(&rest, '/');
	enum hx_code code = parse_db(rest, url, err);

	if (code)
		return code;
	if (name.n == 0 || !redis_url_decode(name, "/?#,@", url->name, sizeof url->name))
		return wrong(err, "the url does not say which primary the Sentinels are asked for "
				  "(redis+sentinel://host:26379,host:26379/name/0)");
	do {
		if (url->sentinels_n == REDIS_SENTINELS_MAX)
			return wrong(err, "the url has too many Sentinels");
		code = parse_place(slice_cut(&hosts, ','), 26379, &url->sentinels[url->sentinels_n++], err);
	} while (!code && hosts.p);
	return code;
}

/* ---- what stands after the ? ---- */

static enum hx_code parse_option(struct slice option, struct redis_url *url, struct hx_error *err)
{
	struct slice value = option, name = slice_cut(&value, '=');
	struct {
		const char *name;
		bool fits;
		char *text;
		size_t size;
	} known[] = {
		{"ca", url->tls, url->ca, sizeof url->ca},
		{"cert", url->tls, url->cert, sizeof url->cert},
		{"key", url->tls, url->key, sizeof url->key},
		{"sentinel_password", url->kind == REDIS_SENTINEL, url->sentinel_password,
		 sizeof url->sentinel_password},
	};

	if (slice_is(name, "db") && url->kind == REDIS_UNIX && value.n > 0)
		return parse_db(value, url, err);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (slice_is(name, known[i].name) && known[i].fits && value.n > 0 && !known[i].text[0] &&
		    redis_url_decode(value, VALUE_BAD, known[i].text, known[i].size))
			return HX_OK;
	return wrong(
		err,
		"after the ? of the url stand ca, cert and key (with rediss), db (redis+unix) or sentinel_password, "
		"each once and with a value");
}

static enum hx_code parse_options(struct slice options, struct redis_url *url, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	while (options.p && !code)
		code = parse_option(slice_cut(&options, '&'), url, err);
	if (!code && !url->cert[0] != !url->key[0])
		code = wrong(err, "cert and key in the url belong together");
	return code;
}

static enum hx_code parse_rest(struct slice rest, struct redis_url *url, struct hx_error *err)
{
	/* The last @ of all ends the credentials, so that no part of a carelessly written password is taken for a host. */
	const char *at = rest.n ? memrchr(rest.p, '@', rest.n) : NULL;
	size_t skip = at ? (size_t)(at - rest.p) + 1 : 0;
	struct slice options = slice_of(rest.p + skip, rest.n - skip), place = slice_cut(&options, '?');
	enum hx_code code;

	if (at && !parse_credentials(slice_of(rest.p, skip - 1), url))
		return wrong(err,
			     "the password in the url cannot be read (characters like @ : / % are written as %XX)");
	if (url->kind == REDIS_UNIX)
		code = parse_unix(place, url, err);
	else if (url->kind == REDIS_SENTINEL)
		code = parse_sentinels(place, url, err);
	else
		code = parse_tcp(place, url, err);
	return code ? code : parse_options(options, url, err);
}

enum hx_code redis_url_parse(const char *text, struct redis_url *ret_url, struct hx_error *err)
{
	enum hx_code code;

	if (strlen(text) > REDIS_URL_BYTES_MAX)
		return wrong(err, "the url is too long");
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		struct redis_url url = {.kind = schemes[i].kind, .tls = schemes[i].tls};
		size_t n = strlen(schemes[i].text);

		if (strncmp(text, schemes[i].text, n) != 0)
			continue;
		code = parse_rest(slice_of(text + n, strlen(text) - n), &url, err);
		if (!code)
			*ret_url = url;
		explicit_bzero(&url, sizeof url);
		return code;
	}
	return wrong(err, "the url does not begin with redis://, rediss://, redis+unix:// or redis+sentinel://");
}
