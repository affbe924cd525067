/* A name is given, and never taken. */
#include "base/rename.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void put(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void a_name_is_given_and_never_taken(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char path[4096];
	int dir;

	(void)state;
	snprintf(path, sizeof path, "%s/hapax-rename.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	put(dir, "a");
	put(dir, "taken");
	assert_false(rename_new(dir, "a", dir, "taken"));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(faccessat(dir, "a", F_OK, 0), 0);
	assert_true(rename_new(dir, "a", dir, "free"));
	assert_int_not_equal(faccessat(dir, "a", F_OK, 0), 0);
	assert_false(rename_new(dir, "a", dir, "other"));
	assert_int_equal(errno, ENOENT);
	unlinkat(dir, "free", 0);
	unlinkat(dir, "taken", 0);
	close(dir);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_name_is_given_and_never_taken)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
