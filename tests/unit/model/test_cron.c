/*
 * Times of schedules: what cron's fields say, what is refused, and every slot of 20 zones over three years against zoneinfo of Python
 * (tests/support/slots.py), gaps and doubled hours among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "model/cron.h"

static struct arena arena;

static const struct zone *zone_of(const char *name)
{
	static char bytes[ZONE_BYTES_MAX];
	struct zone *zone = arena_alloc(&arena, sizeof *zone);
	struct hx_error err;
	char path[200];
	FILE *file;
	size_t n;

	snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is not there: is the package tzdata installed?", path);
	n = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	if (zone_parse(slice_of(bytes, n), &arena, &err, zone))
		fail_msg("%s: %s", name, err.detail);
	return zone;
}

static int64_t at(const char *text)
{
	struct wall_time time;
	struct hx_error err;

	if (wall_time_parse("time", slice_str(text), &err, &time))
		fail_msg("%s", err.detail);
	return time.ms / 1000;
}

static struct timing timing_of(const char *cron, const char *zone)
{
	struct timing timing = {.zone = zone ? zone_of(zone) : &zone_utc, .from_s = INT64_MIN, .to_s = INT64_MAX};
	struct hx_error err;

	if (cron_parse(slice_str(cron), &err, &timing.cron))
		fail_msg("%s: %s", cron, err.detail);
	return timing;
}

static void comes(const char *cron, const char *zone, const char *after, const char *wanted)
{
	struct timing timing = timing_of(cron, zone);
	int64_t next = timing_next(&timing, at(after));
	char text[WALL_TIME_TEXT_BYTES];

	if (next != at(wanted)) {
		wall_time_format((struct wall_time){next * 1000}, text);
		fail_msg("%s in %s after %s: %s, not %s", cron, zone ? zone : "UTC", after, text, wanted);
	}
}

static void the_fields(void **state)
{
	(void)state;
	comes("* * * * *", NULL, "2026-11-16T09:00:00Z", "2026-11-16T09:01:00Z");
	comes("*/15 * * * *", NULL, "2026-11-16T09:00:30Z", "2026-11-16T09:15:00Z");
	comes("5,50 9-17/4 * * *", NULL, "2026-11-16T09:50:00Z", "2026-11-16T13:05:00Z");
	comes("0 9 * * mon-FRI", NULL, "2026-11-20T09:00:00Z", "2026-11-23T09:00:00Z");
	comes("0 0 * * 7", NULL, "2026-11-16T00:00:00Z", "2026-11-22T00:00:00Z");
	comes("0 0 1 jan *", NULL, "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z");
	comes("0 0 L * *", NULL, "2028-02-01T00:00:00Z", "2028-02-29T00:00:00Z");
	comes("0 0 15,L * *", NULL, "2026-11-15T00:00:00Z", "2026-11-30T00:00:00Z");
	comes("0 0 * * FRI#2", NULL, "2026-11-16T00:00:00Z", "2026-12-11T00:00:00Z");
	comes("0 0 * * 5L", NULL, "2026-11-16T00:00:00Z", "2026-11-27T00:00:00Z");
	comes("0 0 29 2 *", NULL, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z");
	comes("10/20 * * * *", NULL, "2026-11-16T09:31:00Z", "2026-11-16T09:50:00Z");
	/* Where both days are restricted, either; where one begins with a star, both. */
	comes("0 0 13 * 5", NULL, "2026-11-08T00:00:00Z", "2026-11-13T00:00:00Z");
	comes("0 0 20 * 1", NULL, "2026-11-16T00:00:00Z", "2026-11-20T00:00:00Z");
	comes("0 0 */2 * 1", NULL, "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
}

static void gaps_and_doubled_hours(void **state)
{
	(void)state;
	/* 02:00 to 03:00 is not there on 2026-03-29: all of its times are its end, which comes once. */
	comes("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z");
	comes("*/15 * * * *", "Europe/Berlin", "2026-03-29T00:45:00Z", "2026-03-29T01:00:00Z");
	comes("*/15 * * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z");
	comes("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z");
	/* 02:00 to 03:00 comes twice on 2026-10-25. */
	comes("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z");
	comes("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z");
	comes("*/15 * * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T02:00:00Z");
	/* Half an hour, and a whole day. */
	comes("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z");
	comes("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", "2011-12-30T10:00:00Z");
	comes("0 12 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z");
	/* After the last change that the file has. */
	comes("30 2 * * *", "Europe/Berlin", "2051-03-25T12:00:00Z", "2051-03-26T01:00:00Z");
}

static void every_so_many_seconds(void **state)
{
	struct timing timing = {.every_s = 7, .zone = &zone_utc, .from_s = INT64_MIN, .to_s = INT64_MAX};

	(void)state;
	assert_int_equal(timing_next(&timing, 0), 7);
	assert_int_equal(timing_next(&timing, 6), 7);
	assert_int_equal(timing_next(&timing, -1), 0);
	timing.from_s = 100;
	assert_int_equal(timing_next(&timing, 0), 100);
	assert_int_equal(timing_next(&timing, 100), 107);
	timing.to_s = 107;
	assert_int_equal(timing_next(&timing, 106), 107);
	assert_true(timing_next(&timing, 107) == ZONE_NO_TIME);
}

static void from_and_to_are_part_of_it(void **state)
{
	struct timing timing = timing_of("0 * * * *", NULL);

	(void)state;
	timing.from_s = at("2026-11-16T09:00:00Z");
	timing.to_s = at("2026-11-16T10:00:00Z");
	assert_true(timing_next(&timing, at("2026-01-01T00:00:00Z")) == timing.from_s);
	assert_true(timing_next(&timing, timing.from_s) == timing.to_s);
	assert_true(timing_next(&timing, timing.to_s) == ZONE_NO_TIME);
}

static void what_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{"", "five fields"},
		{"* * * *", "five fields"},
		{"* * * * * *", "five fields"},
		{"60 * * * *", "minute"},
		{"* 24 * * *", "hour"},
		{"* * 0 * *", "day-of-month"},
		{"* * * 13 *", "month"},
		{"* * * JANUARY *", "month"},
		{"* * * * 8", "day-of-week"},
		{"* * * * FRI#6", "day-of-week"},
		{"* * * * L", "day-of-week"},
		{"*/0 * * * *", "minute"},
		{"5-1 * * * *", "minute"},
		{"1,,2 * * * *", "minute"},
		{"1, * * * *", "minute"},
		{"-1 * * * *", "minute"},
		{"1.5 * * * *", "minute"},
		{"99999999999999999999 * * * *", "minute"},
		{"0 0 30 2 *", "never comes"},
	};
	struct hx_error err;
	struct cron cron;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (cron_parse(slice_str(bad[i][0]), &err, &cron) != HX_VALIDATION_ERROR)
			fail_msg("\"%s\" is not refused", bad[i][0]);
		if (!strstr(err.detail, bad[i][1]))
			fail_msg("\"%s\": %s", bad[i][0], err.detail);
	}
}

static void names_lead_nowhere_else(void **state)
{
	(void)state;
	assert_true(zone_name_is_good(slice_str("Europe/Berlin")));
	assert_true(zone_name_is_good(slice_str("America/Argentina/Buenos_Aires")));
	assert_true(zone_name_is_good(slice_str("Etc/GMT+5")));
	assert_false(zone_name_is_good(slice_str("")));
	assert_false(zone_name_is_good(slice_str("../etc/passwd")));
	assert_false(zone_name_is_good(slice_str("/etc/localtime")));
	assert_false(zone_name_is_good(slice_str("Europe/")));
	assert_false(zone_name_is_good(slice_str("Europe//Berlin")));
	assert_false(zone_name_is_good(slice_str("a/../b")));
}

/* No byte of a file that is cut or changed leads out of it: the builds with sanitizers see it. */
static void broken_files_are_refused_or_read(void **state)
{
	static char whole[ZONE_BYTES_MAX];
	FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "r");
	size_t n = file ? fread(whole, 1, sizeof whole, file) : 0;
	struct hx_error err;
	struct zone zone;

	(void)state;
	assert_true(n > 100);
	fclose(file);
	for (size_t cut = 0; cut < n; cut++) {
		char *copy = malloc(cut + 1);

		memcpy(copy, whole, cut);
		assert_int_equal(zone_parse(slice_of(copy, cut), &arena, &err, &zone), HX_VALIDATION_ERROR);
		free(copy);
		arena_reset(&arena);
	}
	for (size_t i = 0; i < n; i++) {
		char *copy = malloc(n);

		memcpy(copy, whole, n);
		copy[i] = (char)(copy[i] ^ 0x81);
		if (zone_parse(slice_of(copy, n), &arena, &err, &zone) == HX_OK)
			(void)zone_moment(&zone, 1800000000);
		free(copy);
		arena_reset(&arena);
	}
}

static void write_slots(FILE *file, const char *zone, const char *cron, const char *from, const char *to)
{
	struct timing timing = timing_of(cron, zone);
	int64_t end = at(to);

	fprintf(file, "%s\t%s\t%lld\t%lld\n", zone, cron, (long long)at(from), (long long)end);
	for (int64_t t = timing_next(&timing, at(from) - 1); t < end; t = timing_next(&timing, t))
		fprintf(file, "%lld\n", (long long)t);
}

static void every_slot_is_that_of_zoneinfo(void **state)
{
	static const char *const zones[] = {
		"Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe", "America/Sao_Paulo",  "Asia/Kathmandu",
		"Pacific/Apia",     "Africa/Casablanca", "Asia/Tehran",         "Africa/Cairo",       "America/Havana",
		"Asia/Beirut",      "America/Santiago",  "Pacific/Chatham",     "Antarctica/Troll",   "Europe/Dublin",
		"America/St_Johns", "Asia/Gaza",         "Atlantic/Azores",     "Pacific/Kiritimati", "America/Nuuk",
	};
	static const char *const crons[] = {"*/30 0-4 * * *", "13 * * * *",     "30 2 * * MON-FRI",    "0 0 L * *",
					    "45 23 13 * 5",   "0 12 * * TUE#2", "59 23 * FEB,OCT SUNL"};
	char path[300], command[400];
	FILE *file;

	(void)state;
	snprintf(path, sizeof path, "%s/slots", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	file = fopen(path, "w");
	assert_non_null(file);
	for (size_t z = 0; z < sizeof zones / sizeof zones[0]; z++)
		for (size_t c = 0; c < sizeof crons / sizeof crons[0]; c++)
			write_slots(file, zones[z], crons[c], "2024-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
	/* Over the end of what the file has. */
	for (size_t z = 0; z < sizeof zones / sizeof zones[0]; z += 3)
		write_slots(file, zones[z], "*/20 0-3 * * *", "2036-06-01T00:00:00Z", "2039-06-01T00:00:00Z");
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof command, "python3 tests/support/slots.py %s", path);
	assert_int_equal(system(command), 0);
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fields),
		cmocka_unit_test(gaps_and_doubled_hours),
		cmocka_unit_test(every_so_many_seconds),
		cmocka_unit_test(from_and_to_are_part_of_it),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(names_lead_nowhere_else),
		cmocka_unit_test(broken_files_are_refused_or_read),
		cmocka_unit_test(every_slot_is_that_of_zoneinfo),
	};
	int failed;

	arena_init(&arena, 64u << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
