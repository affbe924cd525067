/* The judge of outbound addresses: many spellings, few answers. */
#include "act/outbound.h"

#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* What a resolver makes of a spelling, as the client asks it. */
static const char *refusal(const struct outbound *outbound, const char *spelling)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
	const char *why;

	if (getaddrinfo(spelling, "80", &hints, &found) != 0)
		return "not an address";
	why = outbound_refusal(outbound, found->ai_addr);
	freeaddrinfo(found);
	return why ? why : "allowed";
}

static const struct {
	const char *spelling, *answer;
} spellings[] = {
	/* public */
	{"8.8.8.8", "allowed"},
	{"134744072", "allowed"},
	{"1.1.1.1", "allowed"},
	{"93.184.216.34", "allowed"},
	{"100.63.255.255", "allowed"},
	{"100.128.0.0", "allowed"},
	{"172.15.255.255", "allowed"},
	{"172.32.0.0", "allowed"},
	{"169.253.255.255", "allowed"},
	{"223.255.255.255", "allowed"},
	{"9.255.255.255", "allowed"},
	{"11.0.0.0", "allowed"},
	{"2606:4700:4700::1111", "allowed"},
	{"2a00:1450:4001:82a::200e", "allowed"},
	{"::ffff:8.8.8.8", "allowed"},
	{"64:ff9b::808:808", "allowed"},
	{"2002:808:808::1", "allowed"},
	/* this machine, in every dress */
	{"127.0.0.1", "loopback"},
	{"127.0.0.0", "loopback"},
	{"127.255.255.255", "loopback"},
	{"127.1", "loopback"},
	{"127.0.1", "loopback"},
	{"2130706433", "loopback"},
	{"0x7f000001", "loopback"},
	{"0x7f.0x0.0x0.0x1", "loopback"},
	{"0x7f.1", "loopback"},
	{"017700000001", "loopback"},
	{"0177.0.0.1", "loopback"},
	{"0177.0.0.01", "loopback"},
	{"0000177.0.0.1", "loopback"},
	{"0X7F.0.0.1", "loopback"},
	{"::1", "loopback"},
	{"0:0:0:0:0:0:0:1", "loopback"},
	{"0000:0000:0000:0000:0000:0000:0000:0001", "loopback"},
	{"::ffff:127.0.0.1", "loopback"},
	{"::ffff:7f00:1", "loopback"},
	{"::FFFF:7F00:0001", "loopback"},
	{"0:0:0:0:0:ffff:127.0.0.1", "loopback"},
	{"::127.0.0.1", "loopback"},
	{"::7f00:1", "loopback"},
	{"64:ff9b::127.0.0.1", "loopback"},
	{"64:ff9b::7f00:1", "loopback"},
	{"2002:7f00:1::", "loopback"},
	{"::ffff:0:127.0.0.1", "loopback"},
	{"::ffff:0:7f00:1", "loopback"},
	/* nowhere, which Linux takes for this machine */
	{"0.0.0.0", "unspecified"},
	{"0", "unspecified"},
	{"0x0", "unspecified"},
	{"0.1.2.3", "unspecified"},
	{"::", "unspecified"},
	{"::ffff:0.0.0.0", "unspecified"},
	/* private */
	{"10.0.0.1", "private"},
	{"10.255.255.255", "private"},
	{"012.0.0.1", "private"},
	{"167772161", "private"},
	{"172.16.0.1", "private"},
	{"172.31.255.255", "private"},
	{"192.168.0.1", "private"},
	{"3232235521", "private"},
	{"0xc0a80001", "private"},
	{"192.168.1", "private"},
	{"::ffff:10.0.0.1", "private"},
	{"::ffff:a00:1", "private"},
	{"64:ff9b::10.0.0.1", "private"},
	{"2002:a00:1::1", "private"},
	{"fc00::1", "private"},
	{"fdff:ffff::1", "private"},
	{"fec0::1", "private"},
	/* link-local, with the metadata services of the clouds */
	{"169.254.169.254", "link-local"},
	{"2852039166", "link-local"},
	{"0xa9fea9fe", "link-local"},
	{"0xa9.254.0251.0376", "link-local"},
	{"::ffff:169.254.169.254", "link-local"},
	{"64:ff9b::a9fe:a9fe", "link-local"},
	{"fe80::1", "link-local"},
	{"febf::1", "link-local"},
	{"fd00:ec2::254", "private"},
	/* the rest of the registries */
	{"100.64.0.1", "shared"},
	{"224.0.0.1", "multicast"},
	{"239.255.255.255", "multicast"},
	{"ff02::1", "multicast"},
	{"255.255.255.255", "broadcast"},
	{"240.0.0.1", "reserved"},
	{"192.0.0.8", "reserved"},
	{"192.0.2.1", "documentation"},
	{"198.51.100.7", "documentation"},
	{"203.0.113.9", "documentation"},
	{"2001:db8::1", "documentation"},
	{"198.18.0.1", "benchmarking"},
	{"198.19.255.255", "benchmarking"},
	{"2001::1", "Teredo"},
	{"64:ff9b:1::7f00:1", "local NAT64"},
	{"100::1", "discard-only"},
	{"200::1", "reserved"},
	{"1fff:ffff::1", "reserved"},
	{"4000::1", "reserved"},
	{"5f00::1", "reserved"},
	{"fbff::1", "reserved"},
	{"fe00::1", "reserved"},
	{"::1:0:0:0", "reserved"},
	/* no addresses at all */
	{"256.0.0.1", "not an address"},
	{"127.0.0.1.1", "not an address"},
	{"0x", "not an address"},
	{"08.0.0.1", "not an address"},
	{"1::2::3", "not an address"},
	{"", "not an address"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_spellings_without_a_list(void **state)
{
	struct outbound outbound;

	(void)state;
	assert_true(COUNT(spellings) >= 60);
	outbound_init(&outbound, /* loopback= */ false);
	for (size_t i = 0; i < COUNT(spellings); i++) {
		const char *answer = refusal(&outbound, spellings[i].spelling);

		if (strcmp(answer, spellings[i].answer) != 0)
			fail_msg("%s: %s, not %s", spellings[i].spelling, answer, spellings[i].answer);
	}
	printf("# %zu spellings\n", COUNT(spellings));
}

static void test_loopback_option_opens_nothing_else(void **state)
{
	struct outbound outbound;

	(void)state;
	outbound_init(&outbound, /* loopback= */ true);
	for (size_t i = 0; i < COUNT(spellings); i++) {
		const char *expected = spellings[i].answer;

		if (strcmp(expected, "loopback") == 0)
			expected = "allowed";
		assert_string_equal(refusal(&outbound, spellings[i].spelling), expected);
	}
}

static void list(struct outbound *outbound, const char *const entries[])
{
	struct hx_error err;

	outbound_init(outbound, /* loopback= */ false);
	for (; *entries; entries++)
		if (outbound_allow(outbound, slice_str(*entries), &err))
			fail_msg("%s", err.detail);
}

static void test_listed_only(void **state)
{
	struct outbound o;

	(void)state;
	list(&o, (const char *const[]){"10.1.0.0/16", "192.168.7.9", "fd00::/8", "9.9.9.0/24", NULL});
	assert_string_equal(refusal(&o, "10.1.2.3"), "allowed");
	assert_string_equal(refusal(&o, "::ffff:10.1.2.3"), "allowed");
	assert_string_equal(refusal(&o, "64:ff9b::10.1.2.3"), "allowed");
	assert_string_equal(refusal(&o, "10.2.0.0"), "private");
	assert_string_equal(refusal(&o, "192.168.7.9"), "allowed");
	assert_string_equal(refusal(&o, "192.168.7.8"), "private");
	assert_string_equal(refusal(&o, "fd12::1"), "allowed");
	assert_string_equal(refusal(&o, "fc12::1"), "private");
	assert_string_equal(refusal(&o, "9.9.9.255"), "allowed");
	assert_string_equal(refusal(&o, "9.9.10.0"), "not listed");
	assert_string_equal(refusal(&o, "8.8.8.8"), "not listed");
	assert_string_equal(refusal(&o, "2606:4700::1"), "not listed");
	assert_string_equal(refusal(&o, "127.0.0.1"), "loopback");
}

static void test_everything_is_the_internet(void **state)
{
	struct outbound o;

	(void)state;
	list(&o, (const char *const[]){"0.0.0.0/0", NULL});
	assert_string_equal(refusal(&o, "8.8.8.8"), "allowed");
	assert_string_equal(refusal(&o, "169.254.169.254"), "link-local");
	assert_string_equal(refusal(&o, "10.0.0.1"), "private");
	assert_string_equal(refusal(&o, "127.0.0.1"), "loopback");
	assert_string_equal(refusal(&o, "2606:4700::1"), "not listed");
	list(&o, (const char *const[]){"::/0", NULL});
	assert_string_equal(refusal(&o, "2606:4700::1"), "allowed");
	assert_string_equal(refusal(&o, "8.8.8.8"), "not listed");
	assert_string_equal(refusal(&o, "::ffff:8.8.8.8"), "not listed");
	assert_string_equal(refusal(&o, "::1"), "loopback");
	assert_string_equal(refusal(&o, "fe80::1"), "link-local");
	assert_string_equal(refusal(&o, "4000::1"), "reserved");
	assert_string_equal(refusal(&o, "200::1"), "reserved");
	list(&o, (const char *const[]){"200::/7", NULL});
	assert_string_equal(refusal(&o, "200::1"), "allowed");
	assert_string_equal(refusal(&o, "400::1"), "reserved");
	list(&o, (const char *const[]){"0.0.0.0/0", "169.254.0.0/16", "127.0.0.1", "0.0.0.0/8", NULL});
	assert_string_equal(refusal(&o, "169.254.169.254"), "allowed");
	assert_string_equal(refusal(&o, "127.0.0.1"), "allowed");
	assert_string_equal(refusal(&o, "127.0.0.2"), "loopback");
	assert_string_equal(refusal(&o, "0.0.0.0"), "allowed");
	list(&o, (const char *const[]){"::ffff:10.0.0.0/104", NULL});
	assert_string_equal(refusal(&o, "10.9.9.9"), "allowed");
}

static void test_bad_entries(void **state)
{
	static const char *const bad[] = {
		"",
		"10.0.0.0/33",
		"10.0.0.0/",
		"10.0.0.0/8x",
		"10.0.0.0/08",
		"10.0.0.0/-1",
		"10.0.0.1/8",
		"10.0.0/8",
		"fd00::/129",
		"fd00::1/8",
		"localhost",
		" 10.0.0.0/8",
		"10.0.0.0 /8",
		"0x7f.1",
		"10.0.0.0/8/",
		"10.0.0.0/256",
		"fe80::1%eth0",
		"*",
		"all",
	};
	struct outbound outbound;
	struct hx_error err;

	(void)state;
	outbound_init(&outbound, false);
	for (size_t i = 0; i < COUNT(bad); i++)
		if (outbound_allow(&outbound, slice_str(bad[i]), &err) != HX_CONFIG_ERROR)
			fail_msg("%s was taken", bad[i]);
	assert_int_equal(outbound_allow(&outbound, slice_of("10.0.0.0\0/8", 11), &err), HX_CONFIG_ERROR);
	assert_int_equal(outbound.entries_n, 0);
}

static void test_limit(void **state)
{
	struct outbound outbound;
	struct hx_error err;

	(void)state;
	outbound_init(&outbound, false);
	for (int i = 0; i < OUTBOUND_ENTRIES_MAX; i++)
		assert_int_equal(outbound_allow(&outbound, slice_str("10.0.0.0/8"), &err), HX_OK);
	assert_int_equal(outbound_allow(&outbound, slice_str("10.0.0.0/8"), &err), HX_CONFIG_ERROR);
}

static void test_other_families(void **state)
{
	struct outbound outbound;

	(void)state;
	outbound_init(&outbound, true);
	assert_non_null(outbound_refusal(&outbound, &(struct sockaddr){.sa_family = AF_UNIX}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings_without_a_list),
		cmocka_unit_test(test_loopback_option_opens_nothing_else),
		cmocka_unit_test(test_listed_only),
		cmocka_unit_test(test_everything_is_the_internet),
		cmocka_unit_test(test_bad_entries),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_other_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
