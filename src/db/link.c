/* See link.h. */
#include "db/link.h"

#include <string.h>

#define NUMBERS_MAX 4
#define NUMBER_BYTES 21 /* a sign, 19 digits, the bar */

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			    "8081828384858687888990919293949596979899";

/* The digits of a number, in front of `end`. Every change of status pays for this, so it is not printf's. */
static char *put_digits(int64_t number, char *end)
{
	uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	for (; rest >= 100; rest /= 100)
		memcpy(end -= 2, &pairs[rest % 100 * 2], 2);
	if (rest >= 10)
		memcpy(end -= 2, &pairs[rest * 2], 2);
	else
		*--end = (char)('0' + rest);
	if (number < 0)
		*--end = '-';
	return end;
}

struct numbers {
	char bytes[NUMBERS_MAX * NUMBER_BYTES + 1];
	size_t n;
};

static void add_bar(struct numbers *text)
{
	text->bytes[text->n++] = '|';
}

static void link_add_number(struct numbers *text, int64_t number)
{
	char digits[NUMBER_BYTES], *first = put_digits(number, digits + sizeof digits);
	size_t n = (size_t)(digits + sizeof digits - first);

	memcpy(text->bytes + text->n, first, n);
	text->n += n;
	add_bar(text);
}

void history_link(const struct history_row *row, struct slice before, uint8_t ret_hash[SHA256_BYTES])
{
	struct numbers which = {.n = 0}, what = {.n = 0};

	link_add_number(&which, row->subject);
	link_add_number(&which, row->seq);
	add_bar(&what);
	link_add_number(&what, row->version);
	link_add_number(&what, row->fence);
	link_add_number(&what, row->op);
	link_add_number(&what, row->at);
	sha256_parts((struct slice[]){before, slice_of(which.bytes, which.n), row->from, slice_of("|", 1), row->to,
				      slice_of(what.bytes, what.n), row->node},
		     7, ret_hash);
}
