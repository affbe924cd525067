/* A session is believed as it was signed, by who signed it, until its time; every other text is none. */
#include "engine/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint8_t secret[SESSION_SECRET_BYTES] = "this is the secret of a process";
static const uint8_t digest[SHA256_BYTES] = "and this is the digest of a key";
static const struct mono_time early = {999LL * 1000000}, late = {1000LL * 1000000};

static void make(char ret_text[SESSION_TEXT_CHARS + 1])
{
	struct session session = {.key = 4711, .until_ms = 1000};

	session_sign(&session, secret, digest);
	session_format(&session, ret_text);
	assert_int_equal(strlen(ret_text), SESSION_TEXT_CHARS);
}

static bool is_good(struct slice text, const uint8_t by[SESSION_SECRET_BYTES], const uint8_t of[SHA256_BYTES],
		    struct mono_time now)
{
	struct session session;

	return session_parse(text, &session) && session_is_good(&session, by, of, now);
}

static void it_is_good_until_its_time(void **state)
{
	char text[SESSION_TEXT_CHARS + 1];
	struct session session;

	(void)state;
	make(text);
	assert_true(session_parse(slice_str(text), &session));
	assert_int_equal(session.key, 4711);
	assert_int_equal(session.until_ms, 1000);
	assert_true(is_good(slice_str(text), secret, digest, early));
	assert_false(is_good(slice_str(text), secret, digest, late));
}

static void of_another_key_or_process_it_is_none(void **state)
{
	static const uint8_t other[SHA256_BYTES] = "some other";
	char text[SESSION_TEXT_CHARS + 1];

	(void)state;
	make(text);
	assert_false(is_good(slice_str(text), other, digest, early));
	assert_false(is_good(slice_str(text), secret, other, early));
}

static void every_character_counts(void **state)
{
	char text[SESSION_TEXT_CHARS + 2];

	(void)state;
	make(text);
	for (size_t i = 0; i < SESSION_TEXT_CHARS; i++) {
		char was = text[i];

		text[i] = was == '1' ? '2' : '1';
		assert_false(is_good(slice_str(text), secret, digest, early));
		text[i] = was;
		assert_false(is_good(slice_of(text, i), secret, digest, early));
	}
	text[SESSION_TEXT_CHARS] = '0';
	assert_false(is_good(slice_of(text, SESSION_TEXT_CHARS + 1), secret, digest, early));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_good_until_its_time),
		cmocka_unit_test(of_another_key_or_process_it_is_none),
		cmocka_unit_test(every_character_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
