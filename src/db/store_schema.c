/* See store_schema.h. */
#include "db/store_schema.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char parameter[] = "schema=";

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* PostgreSQL keeps pg_ for itself. */
static bool is_name(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_letter(p[i]) && !(i && p[i] >= '0' && p[i] <= '9'))
			return false;
	return n > 0 && n < STORE_SCHEMA_BYTES && strncasecmp(p, "pg_", 3) != 0 &&
	       !(n == 18 && strncasecmp(p, "information_schema", n) == 0);
}

static enum hx_code take_schema(const char *value, size_t n, char ret_schema[STORE_SCHEMA_BYTES], struct hx_error *err)
{
	/* Not repeated: who mistypes a URL may have a password in the wrong place. */
	if (ret_schema[0] || !is_name(value, n))
		return error_set(err, HX_CONFIG_ERROR,
				 "postgres: ?schema=NAME has one name of at most %d letters, digits and '_', which does"
				 " not begin with pg_",
				 STORE_SCHEMA_BYTES - 1);
	memcpy(ret_schema, value, n);
	ret_schema[n] = '\0';
	return HX_OK;
}

enum hx_code store_schema_split(const char *url, char **ret_url, char ret_schema[STORE_SCHEMA_BYTES],
				struct hx_error *err)
{
	const char *query = strchr(url, '?');
	char *out = malloc(strlen(url) + 1);
	size_t n = query ? (size_t)(query - url) : strlen(url);
	enum hx_code code = out ? HX_OK : error_set(err, HX_NO_MEMORY, "open a store");
	char joint = '?';

	ret_schema[0] = '\0';
	if (out)
		memcpy(out, url, n);
	for (const char *p = query ? query + 1 : NULL, *next; p && !code; p = next) {
		size_t part = strcspn(p, "&");

		next = p[part] ? p + part + 1 : NULL;
		if (strncmp(p, parameter, sizeof parameter - 1) == 0) {
			code = take_schema(p + sizeof parameter - 1, part - (sizeof parameter - 1), ret_schema, err);
			continue;
		}
		out[n++] = joint;
		joint = '&';
		memcpy(out + n, p, part);
		n += part;
	}
	if (code) {
		free(out);
		return code;
	}
	out[n] = '\0';
	*ret_url = out;
	return HX_OK;
}
