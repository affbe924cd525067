/* What is said of a refused text, whatever that was: words that can be printed, and as many errors as are counted. */
#ifndef HX_TESTS_FUZZ_FINDINGS_H
#define HX_TESTS_FUZZ_FINDINGS_H

#include "base/utf8.h"
#include "model/findings.h"

static inline void assert_clean_text(struct slice text)
{
	ASSERT(text.n > 0 && utf8_valid_bytes(text) == text.n);
	for (size_t i = 0; i < text.n; i++)
		ASSERT((unsigned char)text.p[i] >= 0x20 && text.p[i] != 0x7f);
}

static inline void try_findings(const struct findings *findings)
{
	size_t errors = 0, warnings = 0;
	struct strbuf line;

	strbuf_init(&line, 1u << 20);
	for (const struct finding *f = findings->first; f; f = f->next) {
		strbuf_reset(&line);
		finding_print(f, &line);
		ASSERT(!line.failed);
		assert_clean_text(strbuf_slice(&line));
		strbuf_reset(&line);
		finding_print_json(f, &line);
		ASSERT(!line.failed && utf8_valid_bytes(strbuf_slice(&line)) == line.n);
		errors += f->severity == FINDING_ERROR;
		warnings += f->severity == FINDING_WARNING;
		ASSERT(f->next || findings->last == &f->next);
	}
	if (!findings->overflow.text)
		ASSERT(errors == findings->errors && warnings == findings->warnings);
	strbuf_release(&line);
}

#endif
