/* A story of `hapax explore` as a file that `hapax test` carries out. */
#pragma once

#include "trial/trial.h"

struct saved_test {
	const char *path; /* where it goes; a file that is there already is not overwritten */
	size_t definitions_n;
	const char *const *definitions; /* as they were given */
	const char *world;              /* NULL: none */
};

/*
 * Written only if the test breaks the rule that the story breaks. HX_VALIDATION_ERROR: it does not, or the story is more than a test has
 * room for; HX_INTERNAL: the file cannot be written, or is there.
 */
enum hx_code saved_test_write(const struct saved_test *saved, const struct definition_set *set,
			      const struct trial_world *world, const struct trial_story *story, struct arena *arena,
			      struct hx_error *err) HX_MUST_CHECK;
