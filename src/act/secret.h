/*
 * Secrets in the headers of actions: `${env:NAME}` and `${file:PATH}`, filled in at the call and forgotten after it.
 *
 * Nothing here ever puts a value into an error: a message names the variable or the file. What a service sends
 * back may hold the secret all the same (many echo the request into their error page, some into their success), and
 * what they send is stored and shown. So it is masked first:
 *
 *   words    what we say of a failure: every value of SECRET_BYTES_MIN bytes, as it is or with the escapes of JSON
 *   output   JSON that steps go on with: values of SECRET_OUTPUT_BYTES_MIN bytes, which are not there by chance, and inside
 *            of strings alone. It stays JSON, so the outcome stays what it was
 */
#pragma once

#include "base/error.h"
#include "base/strbuf.h"
#include "model/secret_rules.h"

#define SECRET_BYTES_MAX 8192 /* of one value */
#define SECRET_BYTES_MIN 4    /* what is shorter is in every text, and is not masked */
#define SECRET_OUTPUT_BYTES_MIN 16

/* The values that were filled in during one call. Not thread-safe. */
struct secrets {
	struct strbuf values;             /* each with a NUL after it */
	const struct secret_rules *rules; /* what may be filled in; NULL: anything */
};

void secrets_init(struct secrets *secrets);
/* Overwrites them, too. Safe on a zeroed struct and twice. */
void secrets_release(struct secrets *secrets);

/*
 * Appends the text to *out with its references filled in; one line end after the content of a file is left out.
 * HX_CONFIG_ERROR, the detail naming the reference: the variable is not set, the file cannot be read, is longer than
 * SECRET_BYTES_MAX or not a regular file, the reference is of no known kind or never ends, or the rules do not allow it. HX_NO_MEMORY.
 */
enum hx_code secrets_fill(struct secrets *secrets, const char *text, struct strbuf *out,
			  struct hx_error *err) HX_MUST_CHECK;

/* Overwrites every occurrence of a value in the text with stars; in the second, in the strings of a JSON text. */
void secrets_mask_words(const struct secrets *secrets, char *text, size_t n);
void secrets_mask_output(const struct secrets *secrets, char *json, size_t n);
