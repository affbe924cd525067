/* Record keys: every part counts, no two tuples are one, and the form on disk stays what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "gate/scope.h"

struct digest {
	unsigned char bytes[HX_GATE_KEY_BYTES];
};

static struct digest digest_of(const struct gate_scope *scope, const char *key)
{
	struct digest digest;

	gate_record_key(scope, slice_str(key), digest.bytes);
	return digest;
}

static bool same(struct digest a, struct digest b)
{
	return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

static struct gate_scope payments(void)
{
	return (struct gate_scope){.space = slice_str("gate"),
				   .endpoint = true,
				   .method = slice_str("POST"),
				   .path = slice_str("/payments")};
}

/* Records outlive the program, so the bytes that are hashed are written down here. */
static void the_bytes_that_are_hashed(void **state)
{
	static const char plain[] = "\0\0\0\0\0\0\0\4gate"
				    "\377\377\377\377\377\377\377\377"
				    "\0\0\0\0\0\0\0\4POST"
				    "\0\0\0\0\0\0\0\11/payments"
				    "\0\0\0\0\0\0\0\3k-1";
	static const char full[] = "\0\0\0\0\0\0\0\4gate"
				   "\0\0\0\0\0\0\0\4acme"
				   "\377\377\377\377\377\377\377\377"
				   "\377\377\377\377\377\377\377\377"
				   "\0\0\0\0\0\0\0\10x-region"
				   "\0\0\0\0\0\0\0\2eu"
				   "\0\0\0\0\0\0\0\6x-none"
				   "\377\377\377\377\377\377\377\377"
				   "\0\0\0\0\0\0\0\3k-1";
	struct gate_scope scope = payments();
	struct digest expected;

	(void)state;
	sha256(plain, sizeof plain - 1, expected.bytes);
	assert_true(same(digest_of(&scope, "k-1"), expected));

	scope = (struct gate_scope){.space = slice_str("gate"), .tenant = slice_str("acme"), .has_tenant = true};
	scope.parts_n = 2;
	scope.parts[0].name = slice_str("x-region");
	scope.parts[0].value = slice_str("eu");
	scope.parts[0].present = true;
	scope.parts[1].name = slice_str("x-none");
	sha256(full, sizeof full - 1, expected.bytes);
	assert_true(same(digest_of(&scope, "k-1"), expected));
}

static void every_part_counts(void **state)
{
	const struct gate_scope scope = payments();
	const struct digest base = digest_of(&scope, "k");
	struct gate_scope other;

	(void)state;
	assert_true(same(digest_of(&scope, "k"), base));
	assert_false(same(digest_of(&scope, "K"), base));
	assert_false(same(digest_of(&scope, "k "), base));
	other = scope;
	other.space = slice_str("gate2");
	assert_false(same(digest_of(&other, "k"), base));
	other = scope;
	other.method = slice_str("PATCH");
	assert_false(same(digest_of(&other, "k"), base));
	other = scope;
	other.path = slice_str("/payments/");
	assert_false(same(digest_of(&other, "k"), base));
	other = scope;
	other.has_tenant = true; /* sent, and empty */
	assert_false(same(digest_of(&other, "k"), base));
	other = scope;
	other.endpoint = false;
	assert_false(same(digest_of(&other, "k"), base));
}

static void what_does_not_count_is_not_looked_at(void **state)
{
	struct gate_scope scope = payments(), other = payments();

	(void)state;
	scope.endpoint = other.endpoint = false;
	other.method = slice_str("PATCH");
	other.path = slice_str("/elsewhere");
	other.tenant = slice_str("nobody");
	other.parts[0].name = slice_str("x-region");
	assert_true(same(digest_of(&scope, "k"), digest_of(&other, "k")));
}

static void paths_are_not_decoded(void **state)
{
	static const char *const paths[] = {"/a/b", "/a%2Fb", "/a%2fb", "/a//b", "/a/./b", "/A/b", "/a/b/", "/%61/b"};
	enum { N = sizeof paths / sizeof *paths };
	struct gate_scope scope = payments();
	struct digest digests[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		scope.path = slice_str(paths[i]);
		digests[i] = digest_of(&scope, "k");
		for (size_t j = 0; j < i; j++)
			assert_false(same(digests[i], digests[j]));
	}
}

/* What a separator would mix up, also where a part holds the bytes of a length. */
static void no_part_runs_into_the_next(void **state)
{
	struct gate_scope one = payments(), two = payments();
	struct digest digest;

	(void)state;
	two.method = slice_str("POST/");
	two.path = slice_str("payments");
	assert_false(same(digest_of(&one, "k"), digest_of(&two, "k")));
	two = payments();
	two.path = slice_of("/payments\0\0\0\0\0\0\0\1k", 18);
	gate_record_key(&two, slice_str(""), digest.bytes);
	assert_false(same(digest_of(&one, "k"), digest));
	two = payments();
	two.path = slice_str("/payments::k");
	assert_false(same(digest_of(&one, "k"), digest_of(&two, "")));
}

static int compare_digests(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct digest));
}

struct choice {
	bool present;
	const char *text;
};

static const struct choice choices[] = {{false, ""}, {true, ""}, {true, "a"}, {true, "aa"}};
enum { CHOICES = sizeof choices / sizeof *choices };

static void set_header(struct gate_scope *scope, size_t i, const char *name, const struct choice *value)
{
	scope->parts[i].name = slice_str(name);
	scope->parts[i].value = slice_str(value->text);
	scope->parts[i].present = value->present;
	scope->parts_n = i + 1;
}

/* All tuples of few and short parts, absent ones among them: as many digests as tuples. */
static void no_two_tuples_are_one(void **state)
{
	static struct digest all[100000];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < 1u << 16; i++) {
		const struct choice *space = &choices[i & 3], *tenant = &choices[i >> 2 & 3];
		const struct choice *method = &choices[i >> 4 & 3], *path = &choices[i >> 6 & 3];
		const struct choice *first = &choices[i >> 8 & 3], *second = &choices[i >> 10 & 3];
		const struct choice *key = &choices[i >> 12 & 3];
		unsigned headers = i >> 14;
		struct gate_scope scope = {.space = slice_str(space->text),
					   .has_tenant = tenant->present,
					   .tenant = slice_str(tenant->text),
					   .endpoint = method->present,
					   .method = slice_str(method->text),
					   .path = slice_str(path->text)};

		/* Those that say the same as another one. */
		if (!space->present || !key->present || method->present != path->present ||
		    (headers < 1 && first != choices) || (headers < 2 && second != choices) || headers > 2)
			continue;
		if (headers > 0)
			set_header(&scope, 0, "a", first);
		if (headers > 1)
			set_header(&scope, 1, "aa", second);
		assert_true(n < sizeof all / sizeof *all);
		all[n++] = digest_of(&scope, key->text);
	}
	/* space, tenant, method and path or neither, no header or one or two, key */
	assert_int_equal(n, 3 * CHOICES * (1 + 3 * 3) * (1 + CHOICES + CHOICES * CHOICES) * 3);
	qsort(all, n, sizeof *all, compare_digests);
	for (size_t i = 1; i < n; i++)
		assert_false(same(all[i - 1], all[i]));
}

static void all_headers_that_there_may_be(void **state)
{
	struct gate_scope scope = payments();
	struct digest before = digest_of(&scope, "k");

	(void)state;
	for (size_t i = 0; i < GATE_SCOPE_PARTS_MAX; i++) {
		set_header(&scope, i, "x-region", &choices[2]);

		struct digest after = digest_of(&scope, "k");

		assert_false(same(before, after));
		before = after;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_that_are_hashed),
		cmocka_unit_test(every_part_counts),
		cmocka_unit_test(what_does_not_count_is_not_looked_at),
		cmocka_unit_test(paths_are_not_decoded),
		cmocka_unit_test(no_part_runs_into_the_next),
		cmocka_unit_test(no_two_tuples_are_one),
		cmocka_unit_test(all_headers_that_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
