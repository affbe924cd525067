/*
 * What a guard keeps, in a test that kills its mutant (tests/mutants/list): when it does not hold, the test fails with what is
 * broken, in the words that tests/mutants/run looks for. Any other failure there is none of the guard's.
 */
#ifndef HX_TESTS_SUPPORT_MUST_HOLD_H
#define HX_TESTS_SUPPORT_MUST_HOLD_H

#define MUST_HOLD(condition, broken)                                                                                   \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail_msg("counterexample in %s: not %s\n  broken: %s", __func__, #condition, broken);          \
	} while (0)

/* `program NAME`: that test alone. */
#define ONLY_THE_NAMED(argc, argv)                                                                                     \
	do {                                                                                                           \
		if ((argc) > 1)                                                                                        \
			cmocka_set_test_filter((argv)[1]);                                                             \
	} while (0)

#endif
