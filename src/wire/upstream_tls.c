/*
 * See upstream_tls.h. Each link has a multi handle of its own with one easy handle in it (CURLOPT_CONNECT_ONLY): libcurl
 * closes such a connection with certainty only when its multi handle goes, looks for it among all others of that handle
 * with every send, and the multi is needed for nothing else, since our loop watches the socket. It costs two more
 * descriptors for each connection.
 */
#include "wire/upstream_tls.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/excerpt.h"

#define STEPS_MAX 16 /* of libcurl in a row that wait for nothing */

struct tls_client {
	char url[320];
	char *ca_file; /* NULL: the system's certificates are all */
};

struct tls_link {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *connect_to;
	int fd;
	bool given; /* libcurl has the socket */
	CURLcode code;
};

/* ---- whom to expect ---- */

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static CURLcode global_code;

/* Never undone: other users of libcurl in the process may live longer than we do. */
static void init_libcurl(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A file that is missing should be noticed at the start, not by a gate whose every request fails. */
static enum hx_code find_ca_file(struct tls_client *client, const char *variable, struct hx_error *err)
{
	const char *path = getenv(variable);

	if (!path || !*path)
		return HX_OK;
	if (access(path, R_OK) != 0)
		return error_set(err, HX_CONFIG_ERROR, "%s: \"%s\" cannot be read: %s", variable,
				 excerpt_of(slice_str(path)).text, strerror(errno));
	client->ca_file = strdup(path);
	return client->ca_file ? HX_OK : error_set(err, HX_NO_MEMORY, "no memory for the upstream");
}

enum hx_code tls_client_new(const char *authority, const char *ca_variable, struct tls_client **ret_client,
			    struct hx_error *err)
{
	struct tls_client *client = calloc(1, sizeof *client);
	enum hx_code code;

	pthread_once(&global_once, init_libcurl);
	if (!client || global_code != CURLE_OK) {
		free(client);
		return error_set(err, HX_INTERNAL, "libcurl cannot be started");
	}
	code = find_ca_file(client, ca_variable, err);
	if (code != HX_OK) {
		tls_client_free(client);
		return code;
	}
	snprintf(client->url, sizeof client->url, "https://%s/", authority);
	*ret_client = client;
	return HX_OK;
}

void tls_client_free(struct tls_client *client)
{
	if (!client)
		return;
	free(client->ca_file);
	free(client);
}

/* ---- the socket is ours ---- */

static curl_socket_t give_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct tls_link *link = context;

	(void)purpose;
	(void)to;
	if (link->given)
		return CURL_SOCKET_BAD;
	link->given = true;
	return link->fd;
}

static int is_connected(void *context, curl_socket_t fd, curlsocktype purpose)
{
	(void)context;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static int keep_socket(void *context, curl_socket_t fd)
{
	(void)context;
	(void)fd;
	return 0;
}

/* ---- life ---- */

/* Every option must be understood: one that is missing from this libcurl would be a silent hole. */
#define SET(link, option, value) (curl_easy_setopt((link)->easy, (option), (value)) == CURLE_OK)

static bool set_socket(struct tls_link *link, const struct address *to)
{
	char text[ADDRESS_TEXT_BYTES + 2];

	memcpy(text, "::", 2); /* whatever the host and the port */
	address_format(to, text + 2);
	link->connect_to = curl_slist_append(NULL, text);
	return link->connect_to && SET(link, CURLOPT_CONNECT_TO, link->connect_to) &&
	       SET(link, CURLOPT_OPENSOCKETFUNCTION, give_socket) && SET(link, CURLOPT_OPENSOCKETDATA, link) &&
	       SET(link, CURLOPT_SOCKOPTFUNCTION, is_connected) && SET(link, CURLOPT_CLOSESOCKETFUNCTION, keep_socket);
}

static bool set_manners(struct tls_link *link, const struct tls_client *client)
{
	return SET(link, CURLOPT_URL, client->url) && SET(link, CURLOPT_CONNECT_ONLY, 1L) &&
	       SET(link, CURLOPT_PROTOCOLS_STR, "https") && SET(link, CURLOPT_PROXY, "") &&
	       SET(link, CURLOPT_NOPROXY, "*") && SET(link, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(link, CURLOPT_NOSIGNAL, 1L) && SET(link, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
}

/*
 * The folder of the system's certificates is looked into for the one that is wanted, the file with all of them is parsed
 * for each connection, which takes 20 ms of the loop. So the folder is preferred where libcurl knows of one; where it does
 * not, the file is all there is, and our own stands in its place.
 */
static bool set_trust(struct tls_link *link, const struct tls_client *client)
{
	char *folder = NULL;

	(void)curl_easy_getinfo(link->easy, CURLINFO_CAPATH, &folder); /* NULL stays: there is none */
	return SET(link, CURLOPT_SSL_VERIFYPEER, 1L) && SET(link, CURLOPT_SSL_VERIFYHOST, 2L) &&
	       ((!client->ca_file && !folder) || SET(link, CURLOPT_CAINFO, client->ca_file));
}

struct tls_link *tls_link_new(const struct tls_client *client, const struct address *to, int fd)
{
	struct tls_link *link = calloc(1, sizeof *link);

	if (!link)
		return NULL;
	link->fd = fd;
	link->easy = curl_easy_init();
	link->multi = curl_multi_init();
	if (!link->easy || !link->multi || !set_socket(link, to) || !set_manners(link, client) ||
	    !set_trust(link, client) || curl_multi_add_handle(link->multi, link->easy) != CURLM_OK) {
		tls_link_free(link);
		return NULL;
	}
	return link;
}

void tls_link_free(struct tls_link *link)
{
	if (!link)
		return;
	if (link->multi && link->easy)
		(void)curl_multi_remove_handle(link->multi, link->easy); /* also one that was never in it */
	curl_easy_cleanup(link->easy);                                   /* takes NULL */
	(void)curl_multi_cleanup(link->multi);                           /* so does this */
	curl_slist_free_all(link->connect_to);
	free(link);
}

/* ---- greeting ---- */

static enum tls_verdict verdict_of(struct tls_link *link)
{
	struct CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(link->multi, &left)))
		if (message->msg == CURLMSG_DONE) {
			link->code = message->data.result;
			return link->code == CURLE_OK ? TLS_DONE : TLS_FAILED;
		}
	return TLS_MORE;
}

/* libcurl reads and writes until the socket makes it wait. Its timers do not count here, the call has its own. */
enum tls_verdict tls_link_greet(struct tls_link *link)
{
	enum tls_verdict verdict = TLS_MORE;
	long wait_ms = 0;
	int running;

	for (unsigned i = 0; verdict == TLS_MORE && wait_ms == 0; i++) {
		if (i == STEPS_MAX || curl_multi_perform(link->multi, &running) != CURLM_OK ||
		    curl_multi_timeout(link->multi, &wait_ms) != CURLM_OK) {
			link->code = CURLE_FAILED_INIT;
			return TLS_FAILED;
		}
		verdict = verdict_of(link);
	}
	return verdict;
}

const char *tls_link_reason(const struct tls_link *link)
{
	switch (link->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return "the upstream's certificate is not trusted, or not for its name";
	case CURLE_SSL_CACERT_BADFILE:
		return "the certificates to be trusted cannot be read";
	default:
		return "no TLS connection to the upstream could be made";
	}
}

/* ---- bytes ---- */

static ssize_t result_of(CURLcode code, size_t n)
{
	if (code == CURLE_OK)
		return (ssize_t)n;
	errno = code == CURLE_AGAIN ? EAGAIN : ECONNRESET;
	return -1;
}

ssize_t tls_link_send(struct tls_link *link, struct slice bytes)
{
	size_t n = 0;
	CURLcode code = curl_easy_send(link->easy, bytes.p, bytes.n, &n);

	return result_of(code, n);
}

/* libcurl takes any end for an end. With another TLS than OpenSSL inside of it nobody can say, and that is no. */
static bool end_was_announced(struct tls_link *link)
{
	const struct curl_tlssessioninfo *session = NULL;

	return curl_easy_getinfo(link->easy, CURLINFO_TLS_SSL_PTR, &session) == CURLE_OK && session &&
	       session->backend == CURLSSLBACKEND_OPENSSL && session->internals &&
	       SSL_get_shutdown(session->internals) & SSL_RECEIVED_SHUTDOWN;
}

ssize_t tls_link_receive(struct tls_link *link, char *buffer, size_t n)
{
	size_t got = 0;
	CURLcode code = curl_easy_recv(link->easy, buffer, n, &got);

	if (code == CURLE_OK && got == 0 && !end_was_announced(link))
		code = CURLE_RECV_ERROR;
	return result_of(code, got);
}
