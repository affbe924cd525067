/* Secrets: filled in, never named by value, masked where they come back. */
#include "act/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/must_hold.h"

struct filled {
	struct secrets secrets;
	struct strbuf out;
	struct hx_error err;
	enum hx_code code;
};

static void fill(struct filled *f, const char *text)
{
	secrets_init(&f->secrets);
	strbuf_init(&f->out, 1u << 20);
	f->code = secrets_fill(&f->secrets, text, &f->out, &f->err);
}

static void drop(struct filled *f)
{
	secrets_release(&f->secrets);
	secrets_release(&f->secrets);
	strbuf_release(&f->out);
}

static void expect_text(const char *text, const char *filled)
{
	struct filled f;

	fill(&f, text);
	if (f.code)
		fail_msg("%s", f.err.detail);
	assert_string_equal(f.out.p, filled);
	drop(&f);
}

static void expect_error(const char *text, const char *part)
{
	struct filled f;

	fill(&f, text);
	assert_int_equal(f.code, HX_CONFIG_ERROR);
	if (!strstr(f.err.detail, part))
		fail_msg("%s", f.err.detail);
	assert_null(strstr(f.err.detail, "canary"));
	drop(&f);
}

static void test_environment(void **state)
{
	char *big = malloc(SECRET_BYTES_MAX + 2);

	(void)state;
	setenv("HX_TEST_A", "canary-a", 1);
	setenv("HX_TEST_EMPTY", "", 1);
	unsetenv("HX_TEST_NONE");
	expect_text("", "");
	expect_text("plain $ {x} $x }", "plain $ {x} $x }");
	expect_text("${env:HX_TEST_A}", "canary-a");
	expect_text("Bearer ${env:HX_TEST_A}, ${env:HX_TEST_A}!", "Bearer canary-a, canary-a!");
	expect_text("x${env:HX_TEST_EMPTY}y", "xy");
	expect_error("${env:HX_TEST_NONE}", "variable HX_TEST_NONE is not set");
	expect_error("${env:HX_TEST_A}${env:HX_TEST_NONE}", "HX_TEST_NONE");
	expect_error("${env:}", "neither");
	expect_error("${HX_TEST_A}", "neither");
	expect_error("${}", "neither");
	expect_error("${ENV:HX_TEST_A}", "neither");
	expect_error("${env:HX_TEST_A", "has no }");
	memset(big, 'b', SECRET_BYTES_MAX + 1);
	big[SECRET_BYTES_MAX + 1] = '\0';
	setenv("HX_TEST_BIG", big, 1);
	expect_error("${env:HX_TEST_BIG}", "longer than");
	big[SECRET_BYTES_MAX] = '\0';
	setenv("HX_TEST_BIG", big, 1);
	expect_text("${env:HX_TEST_BIG}", big);
	free(big);
}

static void write_file(const char *path, const char *text, size_t n)
{
	FILE *file = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, n, file), n);
	fclose(file);
}

static void test_files(void **state)
{
	char path[64] = "/tmp/hx-secret.XXXXXX", reference[128], fifo[80];
	char *big = malloc(SECRET_BYTES_MAX + 2);

	(void)state;
	close(mkstemp(path));
	snprintf(reference, sizeof reference, "<${file:%s}>", path);
	expect_text(reference, "<>");
	write_file(path, "canary\n", 7);
	expect_text(reference, "<canary>");
	write_file(path, "canary\r\n", 8);
	expect_text(reference, "<canary>");
	write_file(path, "canary\n\n", 8);
	expect_text(reference, "<canary\n>"); /* the caller refuses what is left */
	memset(big, 'b', SECRET_BYTES_MAX + 1);
	big[SECRET_BYTES_MAX] = '\n';
	write_file(path, big, SECRET_BYTES_MAX + 1);
	struct filled f;

	fill(&f, reference);
	assert_int_equal(f.code, HX_OK);
	assert_int_equal(f.out.n, SECRET_BYTES_MAX + 2);
	drop(&f);
	big[SECRET_BYTES_MAX] = 'b';
	write_file(path, big, SECRET_BYTES_MAX + 1);
	expect_error(reference, "longer than");
	expect_error("${file:/nonexistent/file}", "cannot be read");
	expect_error("${file:/tmp}", "cannot be read");
	snprintf(fifo, sizeof fifo, "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	snprintf(reference, sizeof reference, "${file:%s}", fifo);
	expect_error(reference, "cannot be read"); /* and does not wait for a writer */
	unlink(fifo);
	unlink(path);
	free(big);
}

static void expect_masked(const char *value, void (*mask)(const struct secrets *, char *, size_t), const char *text,
			  const char *masked)
{
	char *copy = strdup(text);
	struct filled f;

	setenv("HX_TEST_A", value, 1);
	setenv("HX_TEST_B", "xx", 1); /* too short to be worth it */
	setenv("HX_TEST_EMPTY", "", 1);
	fill(&f, "${env:HX_TEST_EMPTY} ${env:HX_TEST_B} ${env:HX_TEST_A}");
	mask(&f.secrets, copy, strlen(copy));
	assert_string_equal(copy, masked);
	mask(&f.secrets, copy, 0);
	free(copy);
	drop(&f);
}

static void test_mask_words(void **state)
{
	(void)state;
	expect_masked("s3cret", secrets_mask_words, "a s3cret s3cr3t2 s3crets3cret xx abc s3cre",
		      "a ****** s3cr3t2 ************ xx abc s3cre");
	/* As writers of JSON spell it: PHP escapes the slash, Go the ampersand, all of them quotes and backslashes. */
	expect_masked("a/b&c\"d\\e", secrets_mask_words, "<a/b&c\"d\\e> {\"x\":\"a\\/b\\u0026c\\\"d\\\\e\"}",
		      "<*********> {\"x\":\"*****************\"}");
	expect_masked("ab/cd", secrets_mask_words, "ab\\/c ab\\/c\\d ab\\", "ab\\/c ab\\/c\\d ab\\");
}

/* Values that are long enough, in strings alone: what was JSON stays JSON, and a number stays a number. */
static void test_mask_output(void **state)
{
	(void)state;
	expect_masked("0123456789abcdef", secrets_mask_output,
		      "{\"Bearer 0123456789abcdef\":[\"0123456789abcdef\",\"0123456789abcde\"]}",
		      "{\"Bearer ****************\":[\"****************\",\"0123456789abcde\"]}");
	/* The digits of an escape are not the value: what was JSON stays JSON. */
	expect_masked("0123456789abcdef", secrets_mask_output, "\"\\u0123456789abcdef 0123456789abcdef\"",
		      "\"\\u0123456789abcdef ****************\"");
	expect_masked("0123456789abcde", secrets_mask_output, "\"0123456789abcde\"", "\"0123456789abcde\"");
	expect_masked("1234567890123456", secrets_mask_output, "[1234567890123456,\"1234567890123456\"]",
		      "[1234567890123456,\"****************\"]");
	expect_masked("[\"/0123456789abc", secrets_mask_output, "[\"/0123456789abc\",\"[\\\"\\/0123456789abc\"]",
		      "[\"/0123456789abc\",\"******************\"]");
	expect_masked("\",\"0123456789abc", secrets_mask_output, "[\"x\",\"0123456789abc\",\"\\\\\",\"\"]",
		      "[\"x\",\"0123456789abc\",\"\\\\\",\"\"]");
}

/* A definition that came before the list, or by another node: its call is refused, and nothing is read. */
static void test_what_is_not_listed_is_not_filled_in(void **state)
{
	const char *const allow[] = {"env:SHOP_*"};
	const struct secret_rules rules = {.given = true, .n = 1, .allow = allow};
	struct filled f;

	(void)state;
	assert_int_equal(setenv("OTHER_SECRET", "canary", 1), 0);
	secrets_init(&f.secrets);
	f.secrets.rules = &rules;
	strbuf_init(&f.out, 1u << 20);
	f.code = secrets_fill(&f.secrets, "Bearer ${env:OTHER_SECRET}", &f.out, &f.err);
	MUST_HOLD(f.code == HX_CONFIG_ERROR, "a definition that is in the store already reads what is not listed");
	assert_non_null(strstr(f.err.detail, "secrets.allow"));
	drop(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_mask_words),
		cmocka_unit_test(test_mask_output),
		cmocka_unit_test(test_what_is_not_listed_is_not_filled_in),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
