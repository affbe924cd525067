/* The log: one write per event, and a line that stays one parseable line whatever a field holds. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/log.h"

static struct fake_clock fake;
static struct log out;
static int ends[2];

/* A pipe in packet mode: each read() gives what one write() wrote, so it can be seen that it was one. */
static int set_up(void **state)
{
	(void)state;
	if (pipe2(ends, O_DIRECT | O_NONBLOCK) != 0)
		return -1;
	fake_clock_init(&fake, (struct wall_time){1794721140000});
	log_init(&out, ends[1], LOG_LEVEL_DEBUG, &fake.clock);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* The next line, without its LF. It was one write, it ends with the only LF in it, and nothing in it is a control. */
static struct slice take_line(void)
{
	static char line[LOG_LINE_BYTES_MAX + 1];
	ssize_t n = read(ends[0], line, sizeof line);

	assert_in_range(n, 1, LOG_LINE_BYTES_MAX);
	assert_int_equal(line[n - 1], '\n');
	for (ssize_t i = 0; i < n - 1; i++)
		assert_in_range((unsigned char)line[i], 0x20, 0xff);
	line[n - 1] = '\0';
	return slice_of(line, (size_t)n - 1);
}

static void assert_silence(void)
{
	char byte;

	assert_int_equal(read(ends[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

static struct json take_json(void)
{
	struct json value = {{NULL, 0}};
	struct hx_error err;
	struct slice line = take_line();

	if (json_check(line, &err, &value) != HX_OK)
		fail_msg("%.*s: %s", SLICE_ARGS(line), err.detail);
	return value;
}

static void assert_field(struct json line, const char *name, const char *raw)
{
	struct json value = {{NULL, 0}};

	assert_true(json_find(line, slice_str(name), &value));
	assert_string_equal(strndupa(value.raw.p, value.raw.n), raw);
}

static void json_lines(void **state)
{
	(void)state;
	log_info(&out, "started");
	assert_string_equal(take_line().p,
			    "{\"time\":\"2026-11-15T05:39:00.000Z\",\"level\":\"info\",\"message\":\"started\"}");
	fake_clock_advance_ms(&fake, 7);
	log_warn(&out, "the lease has lapsed", log_text("run", "run_7"), log_int("fence", -3),
		 log_slice("owner", slice_of("node a/b", 6)));
	assert_string_equal(
		take_line().p,
		"{\"time\":\"2026-11-15T05:39:00.007Z\",\"level\":\"warn\",\"message\":\"the lease has lapsed\","
		"\"run\":\"run_7\",\"fence\":-3,\"owner\":\"node a\"}");
	log_error(&out, "x", log_int("n", INT64_MIN), log_text("none", NULL));
	assert_string_equal(take_line().p,
			    "{\"time\":\"2026-11-15T05:39:00.007Z\",\"level\":\"error\",\"message\":\"x\","
			    "\"n\":-9223372036854775808,\"none\":\"\"}");
	assert_silence();
}

static void lines_for_people(void **state)
{
	(void)state;
	out.form = LOG_FORM_HUMAN;
	log_info(&out, "started");
	assert_string_equal(take_line().p, "2026-11-15T05:39:00.000Z info  started");
	log_error(&out, "no \"such\" step", log_text("run", "run_7"), log_int("n", 12), log_text("name", "two words"),
		  log_text("empty", ""), log_text("sign", "a=b"), log_text("quote", "\""), log_text("path", "C:\\x"));
	assert_string_equal(take_line().p,
			    "2026-11-15T05:39:00.000Z error no \"such\" step run=run_7 n=12 "
			    "name=\"two words\" empty=\"\" sign=\"a=b\" quote=\"\\\"\" path=\"C:\\\\x\"");
	log_warn(&out, "a\nb", log_text("key", "c\x1b[2J\nd"), log_text("bytes", "\xff"), log_text("c1", "\xc2\x9b"));
	assert_string_equal(take_line().p,
			    "2026-11-15T05:39:00.000Z warn  a\\nb key=\"c\\u001b[2J\\nd\" bytes=\\xff c1=\\u009b");
}

static void a_descriptor_that_is_no_terminal_gets_json(void **state)
{
	(void)state;
	assert_int_equal(out.form, LOG_FORM_JSON);
	assert_int_equal(out.fd, ends[1]);
}

static void a_terminal_gets_lines_for_people(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct log log;

	(void)state;
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
		skip();

	int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);

	assert_true(terminal >= 0);
	log_init(&log, terminal, LOG_LEVEL_INFO, &fake.clock);
	assert_int_equal(log.form, LOG_FORM_HUMAN);
	close(terminal);
	close(master);
}

static void levels_filter(void **state)
{
	static const enum log_level all[] = {LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR};

	(void)state;
	for (int least = 0; least < 4; least++) {
		out.level_min = all[least];
		log_debug(&out, "0");
		log_info(&out, "1");
		log_warn(&out, "2");
		log_error(&out, "3");
		for (int i = least; i < 4; i++) {
			char name[16];

			snprintf(name, sizeof name, "\"%s\"", log_level_name(all[i]));
			assert_field(take_json(), "level", name);
		}
		assert_silence();
	}
	log_write(NULL, LOG_LEVEL_ERROR, "nobody listens", LOG_FIELDS());
}

static void hostile_text_stays_one_line(void **state)
{
	char all[256];
	struct json line;

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	log_info(&out, "key\" : 1}\n{\"level\":\"forged", log_slice("bytes", slice_of(all, sizeof all)),
		 log_text("separators", "\xe2\x80\xa8\xe2\x80\xa9\xc2\x85"), log_text("bad", "\xc3(\xed\xa0\x80"),
		 log_text("good", "h\xc3\xa9 \xf0\x9f\x98\x80"), log_int("last", 1));
	line = take_json();
	assert_field(line, "message", "\"key\\\" : 1}\\n{\\\"level\\\":\\\"forged\"");
	assert_field(line, "level", "\"info\"");
	assert_field(line, "separators", "\"\\u2028\\u2029\\u0085\"");
	assert_field(line, "bad", "\"\\\\xc3(\\\\xed\\\\xa0\\\\x80\"");
	assert_field(line, "good", "\"h\xc3\xa9 \xf0\x9f\x98\x80\"");
	assert_field(line, "last", "1");
	assert_silence();
}

/* Values of every length around the ceiling, of every kind of piece, in both forms: never longer, never broken. */
static void a_line_at_the_limit_and_past_it(void **state)
{
	static const char *const pieces[] = {"x", "\"", "\x01", "\xff", "\xf0\x9f\x98\x80"};
	static char text[2 * LOG_LINE_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		bool was_cut = false;
		unsigned round = 0;

		for (size_t n = 0; n + 4 < sizeof text; n += n > 200 && n < 900 ? 1 : 7) {
			struct json line, cut;
			const char *message = "1234567" + round++ % 7; /* so that every remainder of room occurs */
			struct slice human;
			size_t filled = 0;

			while (filled + strlen(pieces[i]) <= n && filled + 4 < sizeof text) {
				memcpy(text + filled, pieces[i], strlen(pieces[i]));
				filled += strlen(pieces[i]);
			}
			out.form = LOG_FORM_JSON;
			log_info(&out, message, log_slice("value", slice_of(text, filled)), log_int("n", 1));
			line = take_json();

			bool is_cut = json_find(line, slice_str("cut"), &cut);

			/* The field after is there exactly if nothing was cut. */
			assert_true(is_cut == !json_find(line, slice_str("n"), &cut));
			was_cut = is_cut;
			out.form = LOG_FORM_HUMAN;
			log_info(&out, message, log_slice("value", slice_of(text, filled)), log_int("n", 1));
			human = take_line();
			is_cut = human.n > 6 && strcmp(human.p + human.n - 6, " [cut]") == 0;
			assert_true(is_cut == !strstr(human.p, " n=1"));
		}
		assert_true(was_cut);
	}
}

static void the_longest_line_that_is_not_cut(void **state)
{
	static char text[LOG_LINE_BYTES_MAX + 1];
	const size_t frame = strlen(
		"{\"time\":\"2026-11-15T05:39:00.000Z\",\"level\":\"info\",\"message\":\"m\",\"v\":\"");
	const size_t room = LOG_LINE_BYTES_MAX - 16 - frame;

	(void)state;
	memset(text, 'x', sizeof text);
	log_info(&out, "m", log_slice("v", slice_of(text, room)));
	assert_int_equal(take_line().n, frame + room + 2);
	log_info(&out, "m", log_slice("v", slice_of(text, room + 1)));

	struct slice line = take_line();

	assert_true(strcmp(line.p + line.n - 13, "\",\"cut\":true}") == 0);
	assert_int_equal(line.n, frame + room + 13);
}

/* The quote that closes a value may stand in the tail: what follows must see that there is no room left. */
static void fields_behind_a_value_that_just_fits(void **state)
{
	static char text[LOG_LINE_BYTES_MAX];

	(void)state;
	memset(text, 'x', sizeof text);
	for (size_t n = sizeof text - 200; n < sizeof text; n++) {
		for (int form = LOG_FORM_JSON; form <= LOG_FORM_HUMAN; form++) {
			text[0] = form == LOG_FORM_HUMAN ? ' ' : 'x'; /* so that it is quoted for people too */
			out.form = (enum log_form)form;
			log_info(&out, "m", log_slice("v", slice_of(text, n)), log_int("i", 1),
				 log_slice("w", slice_of(text, sizeof text)));
			if (form == LOG_FORM_JSON)
				assert_field(take_json(), "cut", "true");
			else
				assert_non_null(strstr(take_line().p, " [cut]"));
		}
	}
}

static void long_messages_and_many_fields_are_cut_too(void **state)
{
	struct log_field fields[1001] = {{.key = NULL}};
	static char message[3 * LOG_LINE_BYTES_MAX];

	(void)state;
	memset(message, 'm', sizeof message - 1);
	log_info(&out, message, log_int("n", 1));
	assert_field(take_json(), "cut", "true");
	for (int i = 0; i < 1000; i++)
		fields[i] = i % 2 ? log_int("a_number", i) : log_text("a_text", "t");
	log_write(&out, LOG_LEVEL_INFO, "many", fields);
	assert_field(take_json(), "cut", "true");
	out.form = LOG_FORM_HUMAN;
	log_write(&out, LOG_LEVEL_INFO, "many", fields);

	struct slice line = take_line();

	assert_string_equal(line.p + line.n - 6, " [cut]");
}

static void a_line_that_cannot_be_written_is_counted(void **state)
{
	(void)state;
	errno = 42;
	for (int i = 0; i < 100000 && out.lost == 0; i++)
		log_info(&out, "until the pipe is full");
	assert_int_equal(out.lost, 1);
	assert_int_equal(errno, 42); /* logging an error must not change it */
	log_init(&out, -1, LOG_LEVEL_INFO, &fake.clock);
	log_info(&out, "to nowhere");
	assert_int_equal(out.lost, 1);
}

static void *log_a_hundred(void *name)
{
	for (int i = 0; i < 100; i++)
		log_info(&out, "from a thread", log_text("thread", name), log_int("i", i));
	return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
	static char names[4][2] = {"a", "b", "c", "d"};
	pthread_t threads[4];
	int seen = 0;

	(void)state;
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4 << 20) >= 0 || errno == EPERM);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_DIRECT), 0); /* the writers wait for the reader */
	assert_int_equal(fcntl(ends[0], F_SETFL, O_DIRECT), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_a_hundred, names[i]), 0);
	for (; seen < 400; seen++)
		assert_field(take_json(), "message", "\"from a thread\"");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(out.lost, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(json_lines),
		TEST(lines_for_people),
		TEST(a_descriptor_that_is_no_terminal_gets_json),
		TEST(a_terminal_gets_lines_for_people),
		TEST(levels_filter),
		TEST(hostile_text_stays_one_line),
		TEST(a_line_at_the_limit_and_past_it),
		TEST(the_longest_line_that_is_not_cut),
		TEST(fields_behind_a_value_that_just_fits),
		TEST(long_messages_and_many_fields_are_cut_too),
		TEST(a_line_that_cannot_be_written_is_counted),
		TEST(threads_do_not_mix_their_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
