/* Addresses: the spellings that are taken, those that are not, and back to text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/address.h"

static void what_is_parsed_is_written_again(void **state)
{
	static const struct {
		const char *text, *again;
		bool loopback;
	} cases[] = {
		{"127.0.0.1:7411", "127.0.0.1:7411", true}, {"localhost:80", "127.0.0.1:80", true},
		{"127.9.9.9:0", "127.9.9.9:0", true},       {"0.0.0.0:65535", "0.0.0.0:65535", false},
		{"[::1]:7411", "[::1]:7411", true},         {"[0:0::0001]:1", "[::1]:1", true},
		{"[::]:7411", "[::]:7411", false},          {"10.0.0.1:00080", "10.0.0.1:80", false},
		{"[fe80::1]:9", "[fe80::1]:9", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct address address, back;
		struct sockaddr_storage sockaddr;
		char text[ADDRESS_TEXT_BYTES];

		assert_int_equal(address_parse(cases[i].text, NULL, &address), HX_OK);
		address_format(&address, text);
		assert_string_equal(text, cases[i].again);
		assert_int_equal(address_is_loopback(&address), cases[i].loopback);
		assert_true(address_to_sockaddr(&address, &sockaddr) > 0);
		assert_true(address_from_sockaddr(&sockaddr, &back));
		assert_memory_equal(&address, &back, sizeof back);
	}
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"127.0.0.1",
		"127.0.0.1:",
		":80",
		"*:80",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"127.0.0.1:+1",
		"127.0.0.1:8x",
		"127.1:80",
		"256.0.0.1:80",
		"example.com:80",
		"::1:80",
		"[::1]",
		"[::1:80",
		"[]:80",
		"[127.0.0.1]:80",
		"[::1%lo]:80",
		" 127.0.0.1:80",
		"127.0.0.1 :80",
		"127.0.0.1:80 ",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:0000]:1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct address address;
		struct hx_error err;

		if (address_parse(texts[i], &err, &address) != HX_VALIDATION_ERROR)
			fail_msg("\"%s\" was taken", texts[i]);
		assert_non_null(strstr(err.detail, "is not an address and a port"));
	}
}

static void a_mapped_address_is_ipv4(void **state)
{
	struct address address;
	struct sockaddr_storage sockaddr;
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	assert_int_equal(address_parse("[::ffff:10.1.2.3]:4", NULL, &address), HX_OK);
	address_to_sockaddr(&address, &sockaddr);
	assert_true(address_from_sockaddr(&sockaddr, &address));
	address_format(&address, text);
	assert_string_equal(text, "10.1.2.3:4");
	sockaddr.ss_family = AF_UNIX;
	assert_false(address_from_sockaddr(&sockaddr, &address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_parsed_is_written_again),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(a_mapped_address_is_ipv4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
