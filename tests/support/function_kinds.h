/*
 * The units of functions, for the list in unit_kinds.h: each is what the real task asks for once it has read. The function of number n
 * has that id, the key "key", the name "f" and the workspace "w" and that number: so whoever claims there meets it alone.
 */
#ifndef HX_TESTS_SUPPORT_FUNCTION_KINDS_H
#define HX_TESTS_SUPPORT_FUNCTION_KINDS_H

#include "support/run_kinds.h"

/* For fixtures; lapse: its worker's time is over. */
kind_build function_make, function_make_past;

kind_build function_create_key; /* another of the fixture's key */
kind_build function_claim_turn;
/* By the worker that has its turn, or believes that. */
kind_build function_begin_step, function_end_step, function_suspend, function_complete, function_beat;
kind_build function_look_at; /* by the engine */
kind_build function_event_one, function_pause, function_cancel_it;

#endif
