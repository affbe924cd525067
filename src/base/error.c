/* The closed list of errors and its three maps: name, HTTP status, exit code. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const struct {
	const char *name;
	const char *text;
	int http_status;
	int exit_code;
} codes[] = {
#define X(name, number, http, exit_code, text) [number] = {#name, text, http, exit_code},
	HX_CODES(X)
#undef X
};

static enum hx_code known(enum hx_code code)
{
	return (unsigned)code < HX_CODE_COUNT && codes[code].name ? code : HX_INTERNAL;
}

const char *hx_code_name(enum hx_code code)
{
	return codes[known(code)].name;
}

const char *hx_code_text(enum hx_code code)
{
	return codes[known(code)].text;
}

int hx_code_http_status(enum hx_code code)
{
	return codes[known(code)].http_status;
}

int hx_code_exit(enum hx_code code)
{
	return codes[known(code)].exit_code;
}

const char *hx_version(void)
{
	return HX_VERSION;
}

int hx_version_number(void)
{
	return HX_VERSION_NUMBER;
}

enum hx_code error_set(struct hx_error *err, enum hx_code code, const char *format, ...)
{
	if (err) {
		char detail[sizeof err->detail];
		va_list args;

		va_start(args, format);
		int n = vsnprintf(detail, sizeof detail, format, args);
		va_end(args);
		if (n < 0)
			detail[0] = '\0';
		else if ((size_t)n >= sizeof detail)
			detail[utf8_cut(slice_of(detail, sizeof detail - 1))] = '\0';
		err->code = code;
		memcpy(err->detail, detail, sizeof detail);
	}
	return code;
}

_Noreturn void assert_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "hapax: assertion failed: %s (%s:%d)\n", cond, file, line);
	abort();
}
