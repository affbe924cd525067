/* See header.h. */
#include "model/header.h"

#include <strings.h>

#include "base/excerpt.h"
#include "model/text.h"

/* Ours, or the transport's. One of these set twice is read differently by different servers. */
static const char *const reserved[] = {
	"Connection",          "Content-Length",    "Expect",  "Idempotency-Key", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection",  "TE",      "Trailer",         "traceparent",
	"tracestate",          "Transfer-Encoding", "Upgrade",
};

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool header_name_is_token(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!is_token_char((unsigned char)name.p[i]))
			return false;
	return name.n > 0 && name.n <= HEADER_BYTES_MAX;
}

bool header_name_is_reserved(struct slice name)
{
	if (name.n >= 6 && strncasecmp(name.p, "Hapax-", 6) == 0)
		return true;
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
		if (name.n == strlen(reserved[i]) && strncasecmp(name.p, reserved[i], name.n) == 0)
			return true;
	return false;
}

static bool is_placeholder(struct slice inside)
{
	if (inside.n > 4 && memcmp(inside.p, "env:", 4) == 0)
		return text_is_identifier(slice_of(inside.p + 4, inside.n - 4));
	return inside.n > 5 && memcmp(inside.p, "file:", 5) == 0;
}

static bool placeholders_are_valid(struct slice value)
{
	for (size_t i = 0; i + 1 < value.n; i++) {
		if (value.p[i] != '$' || value.p[i + 1] != '{')
			continue;

		const char *inside = value.p + i + 2;
		const char *end = memchr(inside, '}', value.n - i - 2);

		if (!end || !is_placeholder(slice_of(inside, (size_t)(end - inside))))
			return false;
		i = (size_t)(end - value.p);
	}
	return true;
}

static bool value_is_clean(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return value.n <= HEADER_BYTES_MAX;
}

enum hx_code header_check(struct slice name, struct slice value, struct hx_error *err)
{
	struct excerpt shown = excerpt_of(name);

	if (!header_name_is_token(name))
		return error_set(err, HX_VALIDATION_ERROR, "\"%s\" is not the name of a header", shown.text);
	if (header_name_is_reserved(name))
		return error_set(err, HX_VALIDATION_ERROR, "the header %s is written by the engine itself", shown.text);
	if (!value_is_clean(value))
		return error_set(err, HX_VALIDATION_ERROR,
				 "the value of the header %s has control characters or more than %d bytes", shown.text,
				 HEADER_BYTES_MAX);
	if (!placeholders_are_valid(value))
		return error_set(err, HX_VALIDATION_ERROR,
				 "the value of the header %s has a ${...} that is neither ${env:NAME} nor ${file:PATH}",
				 shown.text);
	return HX_OK;
}

/* Words in the names of headers that are there to be kept. */
bool header_has_literal_secret(struct slice name, struct slice value)
{
	static const char *const words[] = {"authorization", "cookie",  "token",  "secret",
					    "password",      "api-key", "apikey", "api_key"};

	if (value.n == 0 || memmem(value.p, value.n, "${", 2))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (size_t at = 0, n = strlen(words[i]); at + n <= name.n; at++)
			if (strncasecmp(name.p + at, words[i], n) == 0)
				return true;
	return false;
}
