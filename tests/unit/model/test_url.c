/* Addresses of http actions. */
#include "definition.h"

#include "model/url.h"

static void accepted(void **state)
{
	static const char *const good[] = {
		"http://127.0.0.1:9000/close",
		"https://example.com",
		"HTTP://example.com/",
		"http://a?x=1",
		"http://[::1]:80/x",
		"http://[fe80::1]",
		"http://a.b-c_d.e:65535/%20?q=a@b",
		"http://h:1",
	};
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (url_check(slice_str(good[i]), &err) != HX_OK)
			fail_msg("%s: %s", good[i], err.detail);
}

static void refused(void **state)
{
	static const char *const bad[][2] = {
		{"", "must begin with http://"},
		{"ftp://h/", "must begin with http://"},
		{"h/close", "must begin with http://"},
		{"//h/", "must begin with http://"},
		{"http:/h", "must begin with http://"},
		{"http://", "no host"},
		{"http:///x", "no host"},
		{"http://:80/", "no host"},
		{"http://?x", "no host"},
		{"http://.a/", "no host"},
		{"http://a..b/", "no host"},
		{"http://-a/", "no host"},
		{"http://a%41/", "no host"},
		{"http://me:pw@h/", "credentials"},
		{"http://me@h/", "credentials"},
		{"http://h:0/", "port"},
		{"http://h:65536/", "port"},
		{"http://h:/", "port"},
		{"http://h:80x/", "port"},
		{"http://h:000080/", "port"},
		{"http://[::1/", "IPv6"},
		{"http://[x]/", "IPv6"},
		{"http://[]/", "IPv6"},
		{"http://[::1]x/", "port"},
		{"http://h/a b", "character"},
		{"http://h/\r\nX: y", "character"},
		{"http://h/\xc3\xa9", "character"},
		{"http://h/#top", "fragment"},
	};
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(url_check(slice_str(bad[i][0]), &err), HX_VALIDATION_ERROR);
		if (!strstr(err.detail, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.detail);
	}
	assert_int_equal(url_check(slice_of("http://h\0/", 10), &err), HX_VALIDATION_ERROR);
}

static void the_length_is_limited(void **state)
{
	char url[URL_BYTES_MAX + 1];
	struct hx_error err;

	(void)state;
	memset(url, 'a', sizeof url);
	memcpy(url, "http://h/", 9);
	assert_int_equal(url_check(slice_of(url, URL_BYTES_MAX), &err), HX_OK);
	assert_int_equal(url_check(slice_of(url, URL_BYTES_MAX + 1), &err), HX_VALIDATION_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(accepted),
		model_test(refused),
		model_test(the_length_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
