#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "api/hook_signature.h"
#include "base/hmac.h"
#include "support/must_hold.h"

#define AT 1614265330 /* when Standard Webhooks has signed its example */

static struct strbuf keys_text;

static const char *check_with(const struct hook_config *hook, const char *secret, const struct wire_field *fields,
			      size_t n, const char *body, int64_t at)
{
	struct hook_keys keys = {.n = 1};
	struct hx_error err;

	strbuf_init(&keys_text, 1000);
	assert_int_equal(hook_key_of(hook, slice_str(secret), &keys_text, &err), HX_OK);
	keys.at[0] = strbuf_slice(&keys_text);

	const char *wrong = hook_check_signature(hook, &keys, (struct wire_fields){fields, n}, slice_str(body),
						 (struct wall_time){at * 1000});

	strbuf_release(&keys_text);
	return wrong;
}

#define FIELD(name, value)                                                                                             \
	{                                                                                                              \
		{name, sizeof(name) - 1},                                                                              \
		{                                                                                                      \
			value, sizeof(value) - 1                                                                       \
		}                                                                                                      \
	}

static void github_s_own_example(void **state)
{
	static const struct hook_config hook = {.scheme = HOOK_GITHUB};
	static const struct wire_field fields[] = {FIELD(
		"x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")};

	(void)state;
	assert_null(check_with(&hook, "It's a Secret to Everybody", fields, 1, "Hello, World!", 0));
	MUST_HOLD(check_with(&hook, "It's a Secret to Everybody", fields, 1, "Hello, World", 0),
		  "the signature of another body is believed");
	MUST_HOLD(check_with(&hook, "It's a Secret to everybody", fields, 1, "Hello, World!", 0),
		  "a signature of another secret is believed");
	assert_non_null(check_with(&hook, "It's a Secret to Everybody", fields, 0, "Hello, World!", 0));
}

static void standard_webhooks_own_example(void **state)
{
	static const struct hook_config hook = {.scheme = HOOK_STANDARD, .window_ms = 300000};
	static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", body[] = "{\"test\": 2432232314}";
	static const struct wire_field fields[] = {
		FIELD("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"), FIELD("webhook-timestamp", "1614265330"),
		FIELD("webhook-signature", "v1,aaaa v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")};

	(void)state;
	assert_null(check_with(&hook, secret, fields, 3, body, AT));
	assert_null(check_with(&hook, secret, fields, 3, body, AT + 300));
	assert_null(check_with(&hook, secret, fields, 3, body, AT - 300));
	assert_non_null(check_with(&hook, secret, fields, 3, body, AT + 301));
	assert_non_null(check_with(&hook, secret, fields, 3, body, AT - 301));
	assert_non_null(check_with(&hook, secret, fields, 2, body, AT));
	assert_non_null(check_with(&hook, "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", fields, 3, body, AT));
}

/* The HMAC is openssl's: printf '1492774577.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test */
static void stripe_s_scheme(void **state)
{
	static const struct hook_config hook = {.scheme = HOOK_STRIPE, .window_ms = 300000};
	static const struct wire_field fields[] = {FIELD(
		"Stripe-Signature",
		"t=1492774577,v1=7656fc2882a7ca0a651666b36bf2f2f22ee204f54f608f227498a2419f2890b2,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39")};

	(void)state;
	assert_null(check_with(&hook, "whsec_test", fields, 1, "{\"id\":\"evt_1\"}", 1492774577));
	assert_non_null(check_with(&hook, "whsec_test", fields, 1, "{\"id\":\"evt_2\"}", 1492774577));
	assert_non_null(check_with(&hook, "whsec_other", fields, 1, "{\"id\":\"evt_1\"}", 1492774577));
	MUST_HOLD(check_with(&hook, "whsec_test", fields, 1, "{\"id\":\"evt_1\"}", 1492774577 + 301),
		  "what was signed long ago is believed");
}

/* RFC 4231, the cases 1, 2 and 6. */
static void hmac_as_its_standard_says(void **state)
{
	static const char long_key[131] =
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
		"\xaa";
	static const struct {
		struct slice key;
		const char *text, *mac;
	} cases[] = {
		{{"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 20},
		 "Hi There",
		 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{{"Jefe", 4},
		 "what do ya want for nothing?",
		 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{{long_key, sizeof long_key},
		 "Test Using Larger Than Block-Size Key - Hash Key First",
		 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct slice text = slice_str(cases[i].text), halves[] = {{text.p, 3}, {text.p + 3, text.n - 3}};
		uint8_t mac[SHA256_BYTES];
		char hex[2 * SHA256_BYTES + 1];

		hmac_sha256(cases[i].key, halves, 2, mac);
		sha256_hex(mac, hex);
		assert_string_equal(hex, cases[i].mac);
	}
	assert_true(bytes_equal_slowly("abc", "abc", 3) && !bytes_equal_slowly("abc", "abd", 3));
	assert_false(bytes_equal_slowly("xbc", "abc", 3));
}

static void secrets_that_are_none(void **state)
{
	static const struct hook_config plain = {.scheme = HOOK_HMAC}, standard = {.scheme = HOOK_STANDARD};
	static const char *const bad[] = {"", "whsec_", "whsec_a", "whsec_!!!!", "whsec_===="};
	struct strbuf key;
	struct hx_error err;

	(void)state;
	strbuf_init(&key, 100);
	assert_int_equal(hook_key_of(&plain, slice_str(""), &key, &err), HX_CONFIG_ERROR);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		strbuf_reset(&key);
		assert_int_equal(hook_key_of(&standard, slice_str(bad[i]), &key, &err), HX_CONFIG_ERROR);
	}
	strbuf_release(&key);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(github_s_own_example),  cmocka_unit_test(standard_webhooks_own_example),
		cmocka_unit_test(stripe_s_scheme),       cmocka_unit_test(hmac_as_its_standard_says),
		cmocka_unit_test(secrets_that_are_none),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
