/*
 * How often, or how long: in `make test` as much as it takes to meet what a test is for, and in `make soak` (HAPAX_SOAK) what is
 * rare as well. tests/soak says which programs are run so.
 */
#ifndef HX_TESTS_SUPPORT_SOAK_H
#define HX_TESTS_SUPPORT_SOAK_H

#include <stdlib.h>

static inline int soak_or(int in_soak, int in_test)
{
	return getenv("HAPAX_SOAK") ? in_soak : in_test;
}

#endif
