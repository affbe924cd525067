/* See token.h. */
#include "gate/token.h"

#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static _Thread_local struct {
	unsigned char bytes[256 * HX_GATE_TOKEN_BYTES];
	size_t left;
	pid_t drawn_by;
} pool;

static bool token_fill(void)
{
	size_t got = 0;

	while (got < sizeof pool.bytes) {
		ssize_t n = getrandom(pool.bytes + got, sizeof pool.bytes - got, 0);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	pool.left = sizeof pool.bytes;
	pool.drawn_by = getpid();
	return true;
}

enum hx_code gate_token_draw(unsigned char ret_token[HX_GATE_TOKEN_BYTES], struct hx_error *err)
{
	if ((pool.left == 0 || pool.drawn_by != getpid()) && !token_fill()) {
		pool.left = 0;
		return error_set(err, HX_BUSY, "the system has no random numbers");
	}
	pool.left -= HX_GATE_TOKEN_BYTES;
	memcpy(ret_token, pool.bytes + pool.left, HX_GATE_TOKEN_BYTES);
	memset(pool.bytes + pool.left, 0, HX_GATE_TOKEN_BYTES);
	return HX_OK;
}
