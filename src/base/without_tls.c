/* Instead of TLS, in a build without OpenSSL (make SLIM=1): https is refused. */
#include "base/tls.h"

#include <errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* there is nothing to be done with any of them */

enum hx_code tls_client_new(const struct tls_options *options, struct tls_client **ret_client, struct hx_error *err)
{
	return error_set(err, HX_CONFIG_ERROR, "this program was built without TLS (SLIM): write http://");
}

/* The rest is never asked: there is no client. */

void tls_client_free(struct tls_client *client)
{
}

struct tls_link *tls_link_new(struct tls_client *client, const char *host, int fd)
{
	return NULL;
}

void tls_link_free(struct tls_link *link)
{
}

enum tls_verdict tls_link_greet(struct tls_link *link)
{
	return TLS_FAILED;
}

const char *tls_link_reason(const struct tls_link *link)
{
	return "this program was built without TLS";
}

const char *tls_link_distrust(const struct tls_link *link)
{
	return NULL;
}

short tls_link_events(const struct tls_link *link)
{
	return 0;
}

ssize_t tls_link_send(struct tls_link *link, struct slice bytes)
{
	errno = ECONNRESET;
	return -1;
}

ssize_t tls_link_receive(struct tls_link *link, char *buffer, size_t n)
{
	errno = ECONNRESET;
	return -1;
}

uint64_t tls_link_written(const struct tls_link *link)
{
	return 0;
}
