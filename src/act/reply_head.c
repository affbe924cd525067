/* See reply_head.h. */
#include "act/reply_head.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

static size_t length_of_type(const char *type)
{
	size_t n = strcspn(type, ";");

	while (n && (type[n - 1] == ' ' || type[n - 1] == '\t'))
		n--;
	return n;
}

bool reply_declares_json(const char *content_type)
{
	static const char *const types[] = {"application/json", "text/json"};
	size_t n;

	if (!content_type)
		return false;
	content_type += strspn(content_type, " \t");
	n = length_of_type(content_type);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (n == strlen(types[i]) && strncasecmp(content_type, types[i], n) == 0)
			return true;
	return n > 5 && strncasecmp(content_type + n - 5, "+json", 5) == 0;
}

/* Digits and nothing else. What is too large for the type is too large for the ceiling, too. */
static bool read_seconds(const char *value, int64_t *ret_s)
{
	int64_t s = 0;

	if (!*value)
		return false;
	for (; *value >= '0' && *value <= '9'; value++)
		s = s > RETRY_AFTER_MS_MAX ? s : s * 10 + (*value - '0');
	*ret_s = s;
	return value[strspn(value, " \t")] == '\0';
}

/* libcurl reads all three forms of RFC 9110, and a few more. A number alone would be a date to it. */
static bool read_date(const char *value, int64_t *ret_s)
{
	time_t at = value && strchr(value, ':') ? curl_getdate(value, NULL) : -1;

	*ret_s = at;
	return at != -1;
}

bool reply_retry_after(const char *value, const char *date, int64_t now_s, int64_t *ret_ms)
{
	int64_t s, from;

	if (!value)
		return false;
	value += strspn(value, " \t");
	if (!read_seconds(value, &s)) {
		if (!read_date(value, &s))
			return false;
		s -= read_date(date, &from) ? from : now_s;
	}
	s = s < 0 ? 0 : s;
	*ret_ms = s < RETRY_AFTER_MS_MAX / 1000 ? s * 1000 : RETRY_AFTER_MS_MAX;
	return true;
}
