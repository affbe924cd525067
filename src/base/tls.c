/* See tls.h. */
#include "base/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/excerpt.h"
#include "base/thread.h"

struct tls_client {
	struct tls_options options; /* its files are copies, NULL where there is none */
	BIO_METHOD *method;
	pthread_mutex_t mutex;
	SSL_CTX *context; /* under the mutex: links have a reference of their own */
	struct stat read; /* what the file was when it was read; likewise */
};

struct tls_link {
	SSL *ssl;
	int fd;
	uint64_t written;
	short events;
	bool broken; /* nothing more may be said on it, not even goodbye */
};

/* ---- the socket, as OpenSSL wants it ---- */

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* OpenSSL's own would write without MSG_NOSIGNAL. */
static int socket_write(BIO *bio, const char *bytes, int n)
{
	struct tls_link *link = BIO_get_data(bio);
	ssize_t sent = send(link->fd, bytes, (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && would_block())
		BIO_set_retry_write(bio);
	if (sent > 0)
		link->written += (uint64_t)sent;
	return (int)sent;
}

static int socket_read(BIO *bio, char *buffer, int n)
{
	struct tls_link *link = BIO_get_data(bio);
	ssize_t got = recv(link->fd, buffer, (size_t)n, 0);

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

/* The file that cannot be used; NULL: all can. The system's certificates are no file of ours. */
static const char *read_files(SSL_CTX *context, const struct tls_options *o)
{
	if (!(o->ca_file && o->ca_only) && SSL_CTX_set_default_verify_paths(context) != 1)
		return "the system's certificates";
	if (o->ca_file && SSL_CTX_load_verify_locations(context, o->ca_file, NULL) != 1)
		return o->ca_file;
	if (o->cert_file && SSL_CTX_use_certificate_chain_file(context, o->cert_file) != 1)
		return o->cert_file;
	if (o->key_file && SSL_CTX_use_PrivateKey_file(context, o->key_file, SSL_FILETYPE_PEM) != 1)
		return o->key_file;
	return NULL;
}

static void set_manners(SSL_CTX *context, const struct tls_options *o)
{
	static const unsigned char alpn[] = "\x08http/1.1";

	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	/* A CA file may name the one that signs, without the root above it. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	/* What was not written may stand elsewhere when it is tried again. */
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	if (o->is_http)
		(void)SSL_CTX_set_alpn_protos(context, alpn,
					      sizeof alpn - 1); /* servers that are not told guess the same */
}

static enum hx_code make_context(const struct tls_options *o, SSL_CTX **ret_context, struct hx_error *err)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	const char *bad;

	if (!context)
		return error_set(err, HX_NO_MEMORY, "no memory for TLS");
	set_manners(context, o);
	errno = 0;
	bad = read_files(context, o);
	ERR_clear_error();
	if (bad) {
		error_set(err, HX_CONFIG_ERROR, "%s: \"%s\" cannot be read: %s", o->name,
			  excerpt_of(slice_str(bad)).text, errno ? strerror(errno) : "it is not what it should be");
		SSL_CTX_free(context);
		return HX_CONFIG_ERROR;
	}
	*ret_context = context;
	return HX_OK;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that is renewed counts from the next connection on. With the mutex held. */
static enum hx_code tls_read_again(struct tls_client *client, struct hx_error *err)
{
	const char *ca_file = client->options.ca_file;
	struct stat now = {0};
	SSL_CTX *context = NULL;
	enum hx_code code;

	if (ca_file && stat(ca_file, &now) != 0)
		return error_set(err, HX_CONFIG_ERROR, "%s: \"%s\" cannot be read: %s", client->options.name,
				 excerpt_of(slice_str(ca_file)).text, strerror(errno));
	if (client->context && same_file(&now, &client->read))
		return HX_OK;
	code = make_context(&client->options, &context, err);
	if (code)
		return code;
	SSL_CTX_free(client->context);
	client->context = context;
	client->read = now;
	return HX_OK;
}

/* Whoever replaces a file may take it away first: what it said is good until it says something else. With the mutex held. */
static enum hx_code refresh(struct tls_client *client, struct hx_error *err)
{
	enum hx_code code = tls_read_again(client, err);

	return client->context ? HX_OK : code;
}

/* NULL stays NULL, and empty becomes it. False: no memory. */
static bool tls_keep(const char **file)
{
	bool given = *file && **file;

	*file = given ? strdup(*file) : NULL;
	return *file || !given;
}

enum hx_code tls_client_new(const struct tls_options *options, struct tls_client **ret_client, struct hx_error *err)
{
	struct tls_client *client = calloc(1, sizeof *client);
	bool kept;
	enum hx_code code;

	if (!client)
		return error_set(err, HX_NO_MEMORY, "no memory for TLS");
	pthread_mutex_init(&client->mutex, NULL);
	client->options = *options;
	kept = tls_keep(&client->options.ca_file);
	kept &= tls_keep(&client->options.cert_file);
	kept &= tls_keep(&client->options.key_file);
	client->method = make_method();
	code = kept && client->method ? refresh(client, err) : error_set(err, HX_NO_MEMORY, "no memory for TLS");
	return HAND_OVER(code, client, tls_client_free, ret_client);
}

void tls_client_free(struct tls_client *client)
{
	if (!client)
		return;
	SSL_CTX_free(client->context);
	BIO_meth_free(client->method);
	pthread_mutex_destroy(&client->mutex);
	free((char *)(uintptr_t)client->options.ca_file);
	free((char *)(uintptr_t)client->options.cert_file);
	free((char *)(uintptr_t)client->options.key_file);
	free(client);
}

/* ---- a connection ---- */

/* The certificate has to be for this host. The dot at the end of a name that is complete is in no certificate. */
static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];
	char name[256];
	size_t n = strlen(host);

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	snprintf(name, sizeof name, "%.*s", (int)(n && host[n - 1] == '.' ? n - 1 : n), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static SSL *new_ssl(struct tls_client *client)
{
	struct hx_error err;

	LOCKED(&client->mutex);
	return refresh(client, &err) ? NULL : SSL_new(client->context);
}

struct tls_link *tls_link_new(struct tls_client *client, const char *host, int fd)
{
	struct tls_link *link = calloc(1, sizeof *link);
	BIO *bio = BIO_new(client->method);

	if (link)
		link->ssl = new_ssl(client);
	if (!link || !link->ssl || !bio || !expect_host(link->ssl, host)) {
		BIO_free(bio);
		tls_link_free(link);
		return NULL;
	}
	link->fd = fd;
	BIO_set_data(bio, link);
	BIO_set_init(bio, 1);
	SSL_set_bio(link->ssl, bio, bio);
	SSL_set_connect_state(link->ssl);
	return link;
}

void tls_link_free(struct tls_link *link)
{
	if (!link)
		return;
	if (link->ssl && !link->broken && SSL_is_init_finished(link->ssl))
		(void)SSL_shutdown(link->ssl); /* nothing of what was sent depends on it */
	SSL_free(link->ssl);
	free(link);
	ERR_clear_error();
}

/* What a call that did not succeed means: -1 with errno, or 0: the other side has said that it ends. */
static ssize_t tls_failed(struct tls_link *link, int rc)
{
	int why = SSL_get_error(link->ssl, rc);

	ERR_clear_error();
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		link->events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		errno = EAGAIN;
		return -1;
	}
	link->broken = true;
	errno = ECONNRESET;
	return -1;
}

enum tls_verdict tls_link_greet(struct tls_link *link)
{
	int rc;

	ERR_clear_error(); /* what another has left there would be taken for ours */
	rc = SSL_do_handshake(link->ssl);

	if (rc == 1)
		return TLS_DONE;
	if (tls_failed(link, rc) < 0 && errno == EAGAIN)
		return TLS_MORE;
	link->broken = true;
	return TLS_FAILED;
}

const char *tls_link_distrust(const struct tls_link *link)
{
	long verdict = SSL_get_verify_result(link->ssl);

	return verdict == X509_V_OK ? NULL : X509_verify_cert_error_string(verdict);
}

const char *tls_link_reason(const struct tls_link *link)
{
	return tls_link_distrust(link) ? "its certificate is not trusted, or not for its name"
				       : "no TLS connection could be made";
}

short tls_link_events(const struct tls_link *link)
{
	return link->events;
}

ssize_t tls_link_send(struct tls_link *link, struct slice bytes)
{
	int rc;

	ERR_clear_error();
	rc = SSL_write(link->ssl, bytes.p, bytes.n > INT_MAX ? INT_MAX : (int)bytes.n);

	if (rc > 0)
		return rc;
	if (tls_failed(link, rc) == 0)
		errno = ECONNRESET;
	return -1;
}

ssize_t tls_link_receive(struct tls_link *link, char *buffer, size_t n)
{
	int rc;

	ERR_clear_error();
	rc = SSL_read(link->ssl, buffer, n > INT_MAX ? INT_MAX : (int)n);

	return rc > 0 ? rc : tls_failed(link, rc);
}

uint64_t tls_link_written(const struct tls_link *link)
{
	return link->written;
}
