/* Answers of a service, and what it saw: what the tests of act/http.c share. */
#ifndef HX_TESTS_UNIT_ACT_HTTP_PAGES_H
#define HX_TESTS_UNIT_ACT_HTTP_PAGES_H

#include "unit/act/upstream.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
#define REPLY(status, body) "HTTP/1.1 " status "\r\nContent-Length: #\r\n\r\n" body

static inline void expect_line(const struct upstream *u, const char *line)
{
	char text[256];

	snprintf(text, sizeof text, "\r\n%s\r\n", line);
	if (!strstr(u->last, text))
		fail_msg("no %s in: %s", line, u->last);
}

#endif
