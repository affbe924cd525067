/* What a schedule says, for the tests of schedules. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "flow/schedule.h"

#define SECOND 1000

static struct arena arena;

#define EVERY(more) "{\"workflow\":\"quick\",\"every\":\"10s\"" more "}"

static struct schedule_spec spec_of(const char *text)
{
	struct schedule_spec spec;
	struct hx_error err;
	struct json json;

	assert_int_equal(json_check(slice_str(text), &err, &json), HX_OK);
	if (schedule_spec_read(json, /* file= */ false, &arena, &err, &spec))
		fail_msg("%s: %s", text, err.detail);
	spec.timing.zone = &zone_utc;
	return spec;
}
