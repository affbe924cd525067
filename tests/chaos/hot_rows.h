/* What test_hot_rows and its hot_writers have to agree about. */
#ifndef HX_TESTS_CHAOS_HOT_ROWS_H
#define HX_TESTS_CHAOS_HOT_ROWS_H

#define HOT_SUBJECTS 20
#define HOT_FIRST_SUBJECT 1
#define HOT_A "left"
#define HOT_B "right"

#endif
