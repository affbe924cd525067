/*
 * A schedule as a file beside the definitions: the same members as in the API, spelt as definitions are, with its name.
 *
 *   {"schedule": "nightly", "kind": "schedule", "workflow": "report", "cron": "0 3 * * *", "catch_up": "last"}
 */
#pragma once

#include "model/findings.h"
#include "model/schedule.h"

struct schedule_file {
	const char *file;
	struct slice name;
	struct slice text; /* schedule_spec_write() of the spec */
	struct schedule_spec spec;
};

/* Does the text say that it is one? */
bool schedule_file_is(struct slice text);
/* NULL: there is something wrong with it, which is a finding. It lives in the arena. */
const struct schedule_file *schedule_file_parse(const char *file, struct slice text, struct arena *arena,
						struct findings *findings);
