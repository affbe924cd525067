/* The table of charset.h. */
#include "wire/charset.h"

#define T CHAR_TOKEN
#define V (CHAR_VALUE | CHAR_EXTENSION)
#define P (CHAR_PATH | CHAR_QUERY)
#define Q CHAR_QUERY
#define H CHAR_HOST
#define X CHAR_HEX
#define D CHAR_DIGIT

/* clang-format off */
const uint8_t charset[256] = {
	['\t'] = V,
	[' '] = V,
	['!'] = T | V | P,
	['"'] = V,
	['#'] = T | V,
	['$' ... '\''] = T | V | P, /* $ % & ' */
	['(' ... ')'] = V | P,
	['*' ... '+'] = T | V | P,
	[','] = V | P,
	['-' ... '.'] = T | V | P | H,
	['/'] = V | P,
	['0' ... '9'] = T | V | P | H | X | D,
	[':' ... ';'] = V | P,
	['<'] = V,
	['='] = V | P,
	['>'] = V,
	['?'] = V | Q,
	['@'] = V | P,
	['A' ... 'F'] = T | V | P | H | X,
	['G' ... 'Z'] = T | V | P | H,
	['['] = V | P,
	['\\'] = V | Q,
	[']'] = V | P,
	['^'] = T | V | P,
	['_'] = T | V | P | H,
	['`'] = T | V | Q,
	['a' ... 'f'] = T | V | P | H | X,
	['g' ... 'z'] = T | V | P | H,
	['{'] = V | Q,
	['|'] = T | V | P,
	['}'] = V | Q,
	['~'] = T | V | P | H,
	[0x80 ... 0xff] = CHAR_VALUE,
};
/* clang-format on */
