/* token.c: no two alike, in one thread, in several, and after a fork. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/token.h"

#define THREADS 4
#define DRAWN 2000 /* several pages */

static unsigned char tokens[THREADS * DRAWN][HX_GATE_TOKEN_BYTES];

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, HX_GATE_TOKEN_BYTES);
}

static void *draw_some(void *place)
{
	unsigned char(*some)[HX_GATE_TOKEN_BYTES] = place;
	struct hx_error err;

	for (size_t i = 0; i < DRAWN; i++)
		if (gate_token_draw(some[i], &err))
			abort();
	return NULL;
}

static void no_two_are_alike(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw_some, tokens[i * DRAWN]), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	qsort(tokens, THREADS * DRAWN, sizeof *tokens, by_bytes);
	for (size_t i = 1; i < THREADS * DRAWN; i++)
		assert_true(by_bytes(tokens[i - 1], tokens[i]) != 0);
}

static void a_child_has_its_own(void **state)
{
	unsigned char ours[HX_GATE_TOKEN_BYTES], theirs[HX_GATE_TOKEN_BYTES];
	struct hx_error err;
	int pipes[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(gate_token_draw(ours, &err), HX_OK); /* the page is there when it forks */
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0)
		_exit(gate_token_draw(theirs, &err) != HX_OK ||
		      write(pipes[1], theirs, sizeof theirs) != (ssize_t)sizeof theirs);
	assert_int_equal(gate_token_draw(ours, &err), HX_OK);
	assert_int_equal(read(pipes[0], theirs, sizeof theirs), (ssize_t)sizeof theirs);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(by_bytes(ours, theirs) != 0);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_two_are_alike),
		cmocka_unit_test(a_child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
