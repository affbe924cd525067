/* redis_url_parse(): what is read, and what is refused. That no password is repeated is in tests/contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/redis.h"

static void good_urls(void **state)
{
	static const struct {
		const char *text, *host, *port, *user, *password;
		int db;
	} urls[] = {
		{"redis://:pw@127.0.0.1:6380/3", "127.0.0.1", "6380", "", "pw", 3},
		{"redis://127.0.0.1:6380/0", "127.0.0.1", "6380", "", "", 0},
		{"redis://redis.internal", "redis.internal", "6379", "", "", 0},
		{"redis://redis_1:1", "redis_1", "1", "", "", 0},
		{"redis://h:65535/", "h", "65535", "", "", 0},
		{"redis://h/1000000", "h", "6379", "", "", REDIS_DB_MAX},
		{"redis://default:pw@h/1", "h", "6379", "default", "pw", 1},
		{"redis://:p%40%3a%2F%25w@h", "h", "6379", "", "p@:/%w", 0},
		{"redis://u%3Au:%C3%A9@h", "h", "6379", "u:u", "\xc3\xa9", 0},
		{"redis://:$!*&=+;,~'@h", "h", "6379", "", "$!*&=+;,~'", 0},
		{"redis://[::1]:6380/2", "::1", "6380", "", "", 2},
		{"redis://:pw@[fe80::1]", "fe80::1", "6379", "", "pw", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct redis_url url;
		struct hx_error err = {0};

		if (redis_url_parse(urls[i].text, &url, &err))
			fail_msg("%s: %s", urls[i].text, err.detail);
		assert_string_equal(url.at.host, urls[i].host);
		assert_string_equal(url.at.port, urls[i].port);
		assert_string_equal(url.user, urls[i].user);
		assert_string_equal(url.password, urls[i].password);
		assert_int_equal(url.db, urls[i].db);
	}
}

static void other_ways(void **state)
{
	struct redis_url url;

	(void)state;
	assert_int_equal(redis_url_parse("rediss://u:p@h:1/2?ca=/etc/a%26b.pem&cert=/c&key=/k", &url, NULL), HX_OK);
	assert_true(url.kind == REDIS_TCP && url.tls && url.db == 2);
	assert_string_equal(url.at.host, "h");
	assert_string_equal(url.user, "u");
	assert_string_equal(url.ca, "/etc/a&b.pem");
	assert_string_equal(url.cert, "/c");
	assert_string_equal(url.key, "/k");
	assert_int_equal(redis_url_parse("redis+unix://:p@/run/redis/s.sock?db=3", &url, NULL), HX_OK);
	assert_true(url.kind == REDIS_UNIX && !url.tls && url.db == 3);
	assert_string_equal(url.path, "/run/redis/s.sock");
	assert_string_equal(url.password, "p");
	assert_int_equal(
		redis_url_parse("rediss+sentinel://:p@a,[::1]:5,c:6/main/4?sentinel_password=q%40", &url, NULL), HX_OK);
	assert_true(url.kind == REDIS_SENTINEL && url.tls && url.db == 4 && url.sentinels_n == 3);
	assert_string_equal(url.name, "main");
	assert_string_equal(url.sentinels[0].host, "a");
	assert_string_equal(url.sentinels[0].port, "26379");
	assert_string_equal(url.sentinels[1].host, "::1");
	assert_string_equal(url.sentinels[1].port, "5");
	assert_string_equal(url.sentinels[2].port, "6");
	assert_string_equal(url.sentinel_password, "q@");
	assert_string_equal(url.password, "p");
}

static const struct {
	const char *text, *part; /* what the error has to name */
} refused_urls[] = {
	{"", "begin"},
	{"redis", "begin"},
	{"redis:/h", "begin"},
	{"REDIS://h", "begin"},
	{" redis://h", "begin"},
	{"redis+tls://h", "begin"},
	{"rediss+unix:///s", "begin"},
	{"redis://h?ca=/ca.pem", "after the ?"},
	{"rediss://h?", "after the ?"},
	{"rediss://h?ca=", "after the ?"},
	{"rediss://h?ca=a&ca=b", "after the ?"},
	{"rediss://h?verify=no", "after the ?"},
	{"rediss://h?cert=/c", "belong together"},
	{"rediss://h?db=1", "after the ?"},
	{"redis+unix://", "socket"},
	{"redis+unix://run/s", "socket"},
	{"redis+unix:///s?db=x", "database"},
	{"redis+unix:///s?db=", "after the ?"},
	{"redis+sentinel://h", "which primary"},
	{"redis+sentinel://h/", "which primary"},
	{"redis+sentinel:///m", "host"},
	{"redis+sentinel://h,/m", "host"},
	{"redis+sentinel://h,g:0/m", "port"},
	{"redis+sentinel://h/m/x", "database"},
	{"redis+sentinel://1,2,3,4,5,6,7,8,9/m", "too many"},
	{"redis://", "host"},
	{"redis:///0", "host"},
	{"redis://:6379", "host"},
	{"redis://h h", "host"},
	{"redis://h\n", "host"},
	{"redis://h?", "host"},
	{"redis://h%41", "host"},
	{"redis://h,g", "host"},
	{"redis://::1", "host"},
	{"redis://[::1", "host"},
	{"redis://[]", "host"},
	{"redis://[h]", "host"},
	{"redis://[::g]", "host"},
	{"redis://[::1]x", "port"},
	{"redis://[::1]6379", "port"},
	{"redis://h:", "port"},
	{"redis://h:0", "port"},
	{"redis://h:65536", "port"},
	{"redis://h:99999999999999999999", "port"},
	{"redis://h:+1", "port"},
	{"redis://h:01", "port"},
	{"redis://h:1x", "port"},
	{"redis://h:1:2", "port"},
	{"redis://h/x", "database"},
	{"redis://h/-1", "database"},
	{"redis://h/01", "database"},
	{"redis://h/1000001", "database"},
	{"redis://h/99999999999999999999", "database"},
	{"redis://h/0/", "database"},
	{"redis://h/0?a=b", "after the ?"},
	{"redis://h/0#x", "database"},
	{"redis://@h", "password"},
	{"redis://:@h", "password"},
	{"redis://u@h", "password"},
	{"redis://u:@h", "password"},
	{"redis://:a:b@h", "password"},
	{"redis://:a@b@h", "password"},
	{"redis://:a/b@h", "password"},
	{"redis://:a?b@h", "password"},
	{"redis://:a b@h", "password"},
	{"redis://:a\xc3\xa9@h", "password"},
	{"redis://:%@h", "password"},
	{"redis://:%4@h", "password"},
	{"redis://:%4g@h", "password"},
	{"redis://:a%00b@h", "password"},
	{"redis://h:1/0@x", "password"},
};

static void bad_urls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused_urls / sizeof *refused_urls; i++) {
		struct redis_url url = {.db = 77};
		struct hx_error err = {0};

		if (redis_url_parse(refused_urls[i].text, &url, &err) != HX_CONFIG_ERROR)
			fail_msg("\"%s\" is accepted", refused_urls[i].text);
		if (!strstr(err.detail, refused_urls[i].part))
			fail_msg("\"%s\" is refused with \"%s\"", refused_urls[i].text, err.detail);
		assert_int_equal(url.db, 77); /* written only on success */
	}
}

/* A url whose password has n times the character. */
static enum hx_code parse_with_password(size_t n, const char *character)
{
	static char text[8192];
	struct redis_url url;
	size_t at = (size_t)snprintf(text, sizeof text, "redis://:");

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s", character);
	snprintf(text + at, sizeof text - at, "@h");
	return redis_url_parse(text, &url, /* err= */ NULL);
}

static void limits(void **state)
{
	char text[REDIS_URL_BYTES_MAX + 2];
	struct redis_url url;

	(void)state;
	assert_int_equal(parse_with_password(REDIS_SECRET_BYTES_MAX, "x"), HX_OK);
	assert_int_equal(parse_with_password(REDIS_SECRET_BYTES_MAX + 1, "x"), HX_CONFIG_ERROR);
	assert_int_equal(parse_with_password(REDIS_SECRET_BYTES_MAX, "%40"), HX_OK);
	assert_int_equal(parse_with_password(REDIS_SECRET_BYTES_MAX + 1, "%40"), HX_CONFIG_ERROR);
	for (size_t host = 254; host <= 257; host++) {
		snprintf(text, sizeof text, "redis://%0*d", (int)host, 0);
		assert_int_equal(redis_url_parse(text, &url, NULL), host <= 255 ? HX_OK : HX_CONFIG_ERROR);
	}
	memset(text, 'x', sizeof text);
	memcpy(text, "redis://", 8);
	text[sizeof text - 1] = '\0';
	assert_int_equal(redis_url_parse(text, &url, NULL), HX_CONFIG_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_urls),
		cmocka_unit_test(other_ways),
		cmocka_unit_test(bad_urls),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
