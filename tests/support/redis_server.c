/* See redis_server.h. */
#include "support/redis_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *needed(const char *variable)
{
	const char *value = getenv(variable);

	if (!value || !*value)
		fail_msg("%s is not set: run this through tests/with-redis (make test does)", variable);
	return value;
}

const char *redis_server_url(void)
{
	return needed("HAPAX_TEST_REDIS");
}

void redis_ctl(const char *what)
{
	char command[512];
	int n = snprintf(command, sizeof command, "'%s' %s", needed("HAPAX_TEST_REDIS_CTL"), what);

	assert_true(n > 0 && (size_t)n < sizeof command);
	assert_int_equal(system(command), 0);
}
