/*
 * The units of schedules and of what is delivered to hooks, for the list in unit_kinds.h.
 *
 * The schedule of number n has that id, the workspace "w" and that number, and the name "s". It starts a run of "order" on the first of
 * January: no slot comes while it is tried, and how many have gone by is the same for both sides. What it starts is called as runs are.
 *
 * The hook of number n is called "h" and that number, and starts, or fires, in the workspace of the same number.
 */
#ifndef HX_TESTS_SUPPORT_SCHEDULE_KINDS_H
#define HX_TESTS_SUPPORT_SCHEDULE_KINDS_H

#include "support/run_kinds.h"

/* For fixtures; late: its slot was years ago. */
kind_build schedule_make, schedule_late;

kind_build schedule_put; /* with other times; it makes one where there is none */
kind_build schedule_look_at, schedule_pause, schedule_resume, schedule_delete_it;
kind_build schedule_trigger; /* with an id that others use too */
kind_build schedule_fill_in;

/* The delivery "id/1" of each hook: nothing is done for it, a run is started, a step is fired. */
kind_build hook_nothing, hook_start, hook_fire;
kind_build hook_same_body; /* another id */
kind_build hook_expire_old;

#endif
