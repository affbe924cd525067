/* See text.h. */
#include "model/text.h"

#include <stdio.h>

const char *text_vprintf(struct arena *a, const char *format, va_list args)
{
	va_list again;

	va_copy(again, args);

	int n = vsnprintf(NULL, 0, format, again);

	va_end(again);
	ASSERT(n >= 0);

	char *text = arena_alloc(a, (size_t)n + 1);

	if (text)
		vsnprintf(text, (size_t)n + 1, format, args);
	return text;
}

const char *text_printf(struct arena *a, const char *format, ...)
{
	va_list args;

	va_start(args, format);

	const char *text = text_vprintf(a, format, args);

	va_end(args);
	return text;
}

bool text_is_number_up_to(const char *text, unsigned max)
{
	unsigned value = 0;
	size_t n = 0;

	for (; text[n] >= '0' && text[n] <= '9' && n < 6; n++)
		value = value * 10 + (unsigned)(text[n] - '0');
	return n > 0 && text[n] == '\0' && value <= max;
}

bool text_is_identifier(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (i && c >= '0' && c <= '9')))
			return false;
	}
	return text.n > 0;
}
