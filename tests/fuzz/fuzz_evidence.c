/*
 * Any text as evidence. Beside not crashing:
 *
 *   - it is refused with words on one clean line, or something is found, or it is whole; and the same each time;
 *   - what is whole is not whole any more when a byte of it is another;
 *   - texts are sealed here before they are looked at, so that what is after the seals is reached: where the text has "SEAL" in it, what
 *     stands before, from the last bracket on, is sealed.
 */
#include <stdint.h>
#include <string.h>

#include "flow/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEALED_BYTES_MAX (1u << 20)
#define DEPTH_MAX 64

static enum hx_code check(struct slice text, struct evidence *ret)
{
	struct hx_error err = {0};
	enum hx_code code = evidence_check(text, ret, &err);

	if (code) {
		ASSERT(code == HX_VALIDATION_ERROR || code == HX_TOO_LARGE || code == HX_NO_MEMORY);
		ASSERT(err.code == code && err.detail[0]);
		for (const char *p = err.detail; *p; p++)
			ASSERT((unsigned char)*p >= 0x20);
	} else if (ret->finding.there) {
		ASSERT(ret->finding.what && ret->finding.subject[0]);
	}
	return code;
}

/* "SEAL" becomes the seal of the object that it would end. */
static void seal_all(struct slice text, struct strbuf *out)
{
	size_t opened[DEPTH_MAX], depth = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.n - i >= 4 && memcmp(text.p + i, "SEAL", 4) == 0 && depth > 0) {
			evidence_seal(out, opened[--depth]);
			i += 3;
			continue;
		}
		if (text.p[i] == '{' && depth < DEPTH_MAX)
			opened[depth++] = out->n;
		if (text.p[i] == '}' && depth > 0)
			depth--;
		strbuf_add_char(out, text.p[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evidence first, second;
	LOCAL_STRBUF(text, SEALED_BYTES_MAX);

	seal_all(slice_of(data, size), &text);
	if (text.failed)
		return 0;
	if (check(strbuf_slice(&text), &first) != check(strbuf_slice(&text), &second))
		ASSERT(false);
	ASSERT(first.finding.there == second.finding.there && first.rows == second.rows &&
	       first.entries == second.entries);
	if (text.n && !first.finding.there && check(strbuf_slice(&text), &first) == HX_OK) {
		text.p[hash_bytes(7, text.p, text.n) % text.n] ^= 1;
		ASSERT(check(strbuf_slice(&text), &second) != HX_OK || second.finding.there);
	}
	return 0;
}
