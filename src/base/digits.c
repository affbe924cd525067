/* See digits.h. */
#include "base/digits.h"

bool digits_number(struct slice text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(text.p[i] - '0'), &number) || number > max)
			return false;
	}
	*ret_number = number;
	return text.n > 0;
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = char_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void hex_write(const void *bytes, size_t n, char *ret_text)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < n; i++) {
		ret_text[2 * i] = "0123456789abcdef"[byte[i] >> 4];
		ret_text[2 * i + 1] = "0123456789abcdef"[byte[i] & 15];
	}
	ret_text[2 * n] = '\0';
}

bool hex_read(struct slice text, size_t n, unsigned char *ret_bytes)
{
	if (text.n != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret_bytes[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}
