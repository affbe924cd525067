/*
 * Texts that the program carries and rarely reads: compressed when it is built (scripts/embed-packed.sh), and unpacked when they
 * are asked for. The SQL of the schema and the words about the API would otherwise be a tenth of the program.
 */
#pragma once

#include <stddef.h>

struct packed {
	const unsigned char *bytes; /* as gzip writes them */
	size_t n;
	size_t whole; /* of the text */
};

/* The text, with a NUL after it, to be freed. Bytes that are no such text are a mistake of the build, not of a user. */
char *packed_text(const struct packed *packed);
/* The same into room for packed->whole bytes, with no NUL after it. */
void packed_into(const struct packed *packed, char *to);
