/* The units of gate records, for the list in unit_kinds.h, which says what records and tokens are called. */
#ifndef HX_TESTS_SUPPORT_GATE_KINDS_H
#define HX_TESTS_SUPPORT_GATE_KINDS_H

#include "support/run_kinds.h"

kind_build gate_acquire, gate_acquire_live, gate_acquire_short, gate_acquire_held, gate_acquire_other,
	gate_acquire_again, gate_read, gate_complete, gate_remove, gate_forget, gate_sweep, gate_completed,
	gate_completion;

#endif
