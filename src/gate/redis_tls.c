/* See redis_tls.h. */
#include "gate/redis_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct redis_tls {
	SSL_CTX *context;
	BIO_METHOD *method; /* how the socket is read and written */
};

struct redis_tls_link {
	SSL *ssl;
	short events;
};

/* ---- the socket, as OpenSSL wants it ---- */

static int fd_of(BIO *bio)
{
	return (int)(intptr_t)BIO_get_data(bio);
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* OpenSSL's own would write without MSG_NOSIGNAL. */
static int socket_write(BIO *bio, const char *bytes, int n)
{
	ssize_t sent = send(fd_of(bio), bytes, (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && would_block())
		BIO_set_retry_write(bio);
	return (int)sent;
}

static int socket_read(BIO *bio, char *buffer, int n)
{
	ssize_t got = recv(fd_of(bio), buffer, (size_t)n, 0);

	BIO_clear_retry_flags(bio);
	if (got < 0 && would_block())
		BIO_set_retry_read(bio);
	return (int)got;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH; /* nothing is kept here, and nothing else is known */
}

static BIO_METHOD *make_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hapax socket");

	if (method && BIO_meth_set_write(method, socket_write) && BIO_meth_set_read(method, socket_read) &&
	    BIO_meth_set_ctrl(method, socket_control))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* ---- whom to trust ---- */

static enum hx_code read_files(SSL_CTX *context, const char *ca, const char *cert, const char *key,
			       struct hx_error *err)
{
	if (ca[0] ? !SSL_CTX_load_verify_locations(context, ca, NULL) : !SSL_CTX_set_default_verify_paths(context))
		return error_set(err, HX_CONFIG_ERROR, "redis: the certificates in %s cannot be read",
				 ca[0] ? ca : "the system's store");
	if (cert[0] && SSL_CTX_use_certificate_chain_file(context, cert) != 1)
		return error_set(err, HX_CONFIG_ERROR, "redis: the certificate in %s cannot be read", cert);
	if (key[0] && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return error_set(err, HX_CONFIG_ERROR,
				 "redis: the key in %s cannot be read, or is not the certificate's", key);
	return HX_OK;
}

enum hx_code redis_tls_new(const char *ca, const char *cert, const char *key, struct redis_tls **ret_tls,
			   struct hx_error *err)
{
	struct redis_tls *tls = calloc(1, sizeof *tls);
	enum hx_code code = HX_OK;

	if (tls) {
		tls->context = SSL_CTX_new(TLS_client_method());
		tls->method = make_method();
	}
	if (!tls || !tls->context || !tls->method) {
		redis_tls_free(tls);
		return error_set(err, HX_NO_MEMORY, "redis: no memory for TLS");
	}
	SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	/* What was not written may stand elsewhere when it is tried again. */
	SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	code = read_files(tls->context, ca, cert, key, err);
	ERR_clear_error();
	if (code)
		redis_tls_free(tls);
	else
		*ret_tls = tls;
	return code;
}

void redis_tls_free(struct redis_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls);
}

/* ---- a connection ---- */

/* The certificate has to be for this host. */
static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];
	bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;

	if (is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct redis_tls_link *redis_tls_open(struct redis_tls *tls, int fd, const char *host)
{
	struct redis_tls_link *link = calloc(1, sizeof *link);
	BIO *bio = BIO_new(tls->method);

	if (link)
		link->ssl = SSL_new(tls->context);
	if (!link || !link->ssl || !bio || !expect_host(link->ssl, host)) {
		BIO_free(bio);
		redis_tls_close(link);
		return NULL;
	}
	BIO_set_data(bio, (void *)(intptr_t)fd);
	BIO_set_init(bio, 1);
	SSL_set_bio(link->ssl, bio, bio);
	SSL_set_connect_state(link->ssl);
	return link;
}

void redis_tls_close(struct redis_tls_link *link)
{
	if (!link)
		return;
	SSL_free(link->ssl); /* without a farewell: nothing of what was sent depends on one */
	free(link);
	ERR_clear_error();
}

/* What a call that did not succeed means, in errno. 0: the other side has ended. */
static ssize_t failed(struct redis_tls_link *link, int rc)
{
	int why = SSL_get_error(link->ssl, rc);

	ERR_clear_error();
	errno = ECONNRESET;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		link->events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		errno = EAGAIN;
	}
	return -1;
}

enum hx_code redis_tls_greet(struct redis_tls_link *link, struct hx_error *err)
{
	int rc = SSL_do_handshake(link->ssl);
	long verdict;

	if (rc == 1)
		return HX_OK;
	if (failed(link, rc) < 0 && errno == EAGAIN)
		return HX_BUSY;
	verdict = SSL_get_verify_result(link->ssl);
	if (verdict != X509_V_OK)
		return error_set(err, HX_CONFIG_ERROR, "redis: the server's certificate is not trusted: %s",
				 X509_verify_cert_error_string(verdict));
	return error_set(err, HX_STORE_UNAVAILABLE, "redis: TLS could not be agreed on with the server");
}

short redis_tls_events(const struct redis_tls_link *link)
{
	return link->events;
}

ssize_t redis_tls_send(struct redis_tls_link *link, const char *bytes, size_t n)
{
	int rc = SSL_write(link->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);

	return rc > 0 ? rc : failed(link, rc) < 0 ? -1 : (errno = ECONNRESET, -1);
}

ssize_t redis_tls_receive(struct redis_tls_link *link, char *buffer, size_t n)
{
	int rc = SSL_read(link->ssl, buffer, n > INT_MAX ? INT_MAX : (int)n);

	return rc > 0 ? rc : failed(link, rc);
}
