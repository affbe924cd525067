/* See transfer.h, and http.h for the hazard of requests, seeking and fresh connections. */
#include "act/transfer.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "act/headers.h"
#include "act/reply_head.h"

static bool is_idempotent(const struct transfer *t)
{
	return t->job->action->effect == EFFECT_IDEMPOTENT;
}

/* ---- what libcurl calls ---- */

static const char *refusal_of(const struct transfer *t, const struct sockaddr *to)
{
	static const struct outbound public_only;

	return outbound_refusal(t->options->outbound ? t->options->outbound : &public_only, to);
}

/* The address is the one that is connected to next: no resolver comes in between. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct transfer *t = context;
	const char *refusal = refusal_of(t, &to->addr);
	int fd;

	(void)purpose;
	if (refusal) {
		const void *address = to->family == AF_INET6
					      ? (const void *)&((struct sockaddr_in6 *)(void *)&to->addr)->sin6_addr
					      : (const void *)&((struct sockaddr_in *)(void *)&to->addr)->sin_addr;

		t->refusal = refusal;
		if (!inet_ntop(to->family, address, t->refused_address, sizeof t->refused_address))
			t->refused_address[0] = '\0';
		return CURL_SOCKET_BAD;
	}
	t->sockets++;
	fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	sockets_opened(t->open, fd);
	return fd;
}

/* The connection may have outlived the transfer that opened it. */
static int close_socket(void *context, curl_socket_t fd)
{
	sockets_close(context, fd);
	return 0;
}

/* The connection is there, nothing of this request has been sent on it. */
static int before_request(void *context, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct transfer *t = context;

	(void)primary_ip;
	(void)local_ip;
	(void)primary_port;
	t->unclean = t->sockets == 0 && !sockets_are_clean(t->open, local_port);
	if (t->unclean)
		return CURL_PREREQFUNC_ABORT;
	t->requests++;
	return t->requests > 1 && !is_idempotent(t) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t read_body(char *buffer, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	struct slice body = t->job->call.input;
	size_t n = body.n - t->body_read;

	if (n > size * count)
		n = size * count;
	if (n)
		memcpy(buffer, body.p + t->body_read, n);
	t->body_read += n;
	return n;
}

static int seek_body(void *context, curl_off_t offset, int origin)
{
	struct transfer *t = context;

	if (!is_idempotent(t) || origin != SEEK_SET || offset < 0 || (size_t)offset > t->job->call.input.n)
		return CURL_SEEKFUNC_FAIL;
	t->body_read = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static long status_of(const struct transfer *t)
{
	long status = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 stays: no reply */
	return status;
}

/* Line by line. A head that was cut off looks like success to libcurl: it has a status, and no length to miss. */
static size_t take_head_line(char *bytes, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	struct slice line = slice_of(bytes, size * count);

	t->head_bytes += line.n;
	if (t->head_bytes > TRANSFER_HEAD_BYTES_MAX)
		return 0;
	if (line.n >= 5 && memcmp(line.p, "HTTP/", 5) == 0)
		t->head_complete = false; /* of the next reply, after a 100 */
	else if (slice_is(line, "\r\n") || slice_is(line, "\n"))
		t->head_complete = true;
	return line.n;
}

/* A success is kept whole or the transfer ends; of a failure the beginning will do, and the rest is read past. */
static size_t take_reply(char *bytes, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	size_t n = size * count;
	bool whole = verdict_reads_body(&t->job->action->outcomes, status_of(t));

	if (whole && n > VERDICT_OUTPUT_BYTES_MAX - t->reply.n) {
		t->reply_too_long = true;
		return 0;
	}
	if (!whole && n > TRANSFER_ERROR_BODY_MAX - t->reply.n) {
		strbuf_add(&t->reply, bytes, TRANSFER_ERROR_BODY_MAX - t->reply.n);
		return n;
	}
	strbuf_add(&t->reply, bytes, n);
	return t->reply.failed ? 0 : n;
}

/* ---- setting it up ---- */

/* Every option must be understood: one that is missing from this libcurl would be a silent hole. */
#define SET(t, option, value) (curl_easy_setopt((t)->easy, (option), (value)) == CURLE_OK)

static bool set_request(struct transfer *t)
{
	const struct job *job = t->job;
	long timeout = job_timeout_ms(job) < INT_MAX ? (long)job_timeout_ms(job) : INT_MAX;

	return SET(t, CURLOPT_URL, job->action->url) && SET(t, CURLOPT_POST, 1L) &&
	       SET(t, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->call.input.n) &&
	       SET(t, CURLOPT_READFUNCTION, read_body) && SET(t, CURLOPT_READDATA, t) &&
	       SET(t, CURLOPT_SEEKFUNCTION, seek_body) && SET(t, CURLOPT_SEEKDATA, t) &&
	       SET(t, CURLOPT_PREREQFUNCTION, before_request) && SET(t, CURLOPT_PREREQDATA, t) &&
	       SET(t, CURLOPT_FRESH_CONNECT, job->call.input.n == 0 && !is_idempotent(t) ? 1L : 0L) &&
	       SET(t, CURLOPT_HTTPHEADER, t->headers) && SET(t, CURLOPT_USERAGENT, "hapax/" HX_VERSION) &&
	       SET(t, CURLOPT_TIMEOUT_MS, timeout) && SET(t, CURLOPT_CONNECTTIMEOUT_MS, timeout);
}

static bool set_reply(struct transfer *t)
{
	return SET(t, CURLOPT_HEADERFUNCTION, take_head_line) && SET(t, CURLOPT_HEADERDATA, t) &&
	       SET(t, CURLOPT_WRITEFUNCTION, take_reply) && SET(t, CURLOPT_WRITEDATA, t) &&
	       SET(t, CURLOPT_FOLLOWLOCATION, 0L) && SET(t, CURLOPT_HTTP09_ALLOWED, 0L) &&
	       SET(t, CURLOPT_ERRORBUFFER, t->error);
}

/* QUICK_EXIT: giving up during a slow name look-up must not hold up the thread, and with it all other calls. */
static bool set_safety(struct transfer *t)
{
	const char *ca_file = t->options->ca_file;

	return SET(t, CURLOPT_PROTOCOLS_STR, "http,https") && SET(t, CURLOPT_PROXY, "") &&
	       SET(t, CURLOPT_NOPROXY, "*") && SET(t, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(t, CURLOPT_OPENSOCKETFUNCTION, open_socket) && SET(t, CURLOPT_OPENSOCKETDATA, t) &&
	       SET(t, CURLOPT_CLOSESOCKETFUNCTION, close_socket) && SET(t, CURLOPT_CLOSESOCKETDATA, t->open) &&
	       SET(t, CURLOPT_SSL_VERIFYPEER, 1L) && SET(t, CURLOPT_SSL_VERIFYHOST, 2L) &&
	       SET(t, CURLOPT_MAXAGE_CONN, (long)TRANSFER_IDLE_SECONDS) && SET(t, CURLOPT_QUICK_EXIT, 1L) &&
	       SET(t, CURLOPT_NOSIGNAL, 1L) && SET(t, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
	       SET(t, CURLOPT_PRIVATE, t) && (!ca_file || SET(t, CURLOPT_CAINFO, ca_file));
}

static enum hx_code set_up(struct transfer *t, struct hx_error *err)
{
	enum hx_code code = headers_build(t->job, &t->secrets, &t->headers, err);

	if (code)
		return code;
	t->easy = curl_easy_init();
	if (!t->easy)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	if (!t->job->action->url)
		return error_set(err, HX_CONFIG_ERROR, "the action has no url");
	if (!set_request(t) || !set_reply(t) || !set_safety(t))
		return error_set(err, HX_NO_MEMORY, "libcurl does not take its options");
	return HX_OK;
}

enum hx_code transfer_new(struct job *job, const struct http_options *options, struct sockets *open,
			  struct transfer **ret_transfer, struct hx_error *err)
{
	struct transfer *t = calloc(1, sizeof *t);
	enum hx_code code;

	if (!t)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	t->job = job;
	t->options = options;
	t->open = open;
	secrets_init(&t->secrets);
	t->secrets.rules = t->options->secret_rules;
	strbuf_init(&t->reply, VERDICT_OUTPUT_BYTES_MAX);
	strbuf_init(&t->made, VERDICT_OUTPUT_BYTES_MAX);
	code = set_up(t, err);
	if (code)
		transfer_free(t);
	else
		*ret_transfer = t;
	return code;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	curl_easy_cleanup(t->easy); /* takes NULL */
	headers_free(t->headers);
	secrets_release(&t->secrets);
	strbuf_release(&t->reply);
	strbuf_release(&t->made);
	free(t);
}

bool transfer_try_fresh(struct transfer *t)
{
	if (!t->unclean || t->requests || !SET(t, CURLOPT_FRESH_CONNECT, 1L))
		return false;
	t->unclean = false;
	t->error[0] = '\0';
	return true;
}

/* ---- judging it ---- */

/*
 * A service may show us our own secrets. What becomes of the call is decided on what it sent; what is kept of it is masked,
 * our words before they are cut to their length.
 */
static struct verdict judge(struct transfer *t, const struct reply *reply, struct strbuf *words)
{
	struct verdict verdict = verdict_of_reply(reply, words);

	if (verdict.output.p == t->made.p && t->made.n) { /* made anew of what is masked: it is what it was */
		secrets_mask_words(&t->secrets, t->reply.p, t->reply.n);
		return verdict_of_reply(reply, words);
	}
	if (verdict.output.p != words->p) {
		secrets_mask_output(&t->secrets, t->reply.p, t->reply.n);
		return verdict;
	}
	secrets_mask_words(&t->secrets, t->reply.p, t->reply.n);
	verdict.output = verdict_of_reply(reply, words).output;
	if (verdict.output.p == words->p)
		secrets_mask_words(&t->secrets, words->p, words->n);
	return verdict;
}

/* All that was tried was refused by outbound.allow. Where another address was tried too, it may work another day. */
static bool was_refused(const struct transfer *t)
{
	return t->refusal && t->sockets == 0 && t->requests == 0;
}

static const char *fault_of(const struct transfer *t, CURLcode code)
{
	if (t->reply_too_long)
		return "the reply is longer than 16 MiB";
	if (t->head_bytes > TRANSFER_HEAD_BYTES_MAX)
		return "the head of the reply is longer than 64 KiB";
	if (code == CURLE_OK)
		return "the head of the reply is cut off";
	return t->error[0] ? t->error : curl_easy_strerror(code);
}

/* Of the last head, after all interim ones. NULL: it is not there. */
static const char *field_of(const struct transfer *t, const char *name)
{
	struct curl_header *field;

	return curl_easy_header(t->easy, name, 0, CURLH_HEADER, -1, &field) == CURLHE_OK ? field->value : NULL;
}

static void read_head(const struct transfer *t, struct reply *reply)
{
	int64_t now_s = clock_wall(clock_system()).ms / 1000;

	reply->declares_json = reply_declares_json(field_of(t, "Content-Type"));
	reply->tells_when = reply_retry_after(field_of(t, "Retry-After"), field_of(t, "Date"), now_s,
					      &reply->not_before_ms);
}

struct verdict transfer_judge(struct transfer *t, CURLcode code, struct strbuf *words)
{
	struct reply reply = {
		.sent = t->requests > 0,
		.hopeless = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL,
		.complete = code == CURLE_OK && t->head_complete,
		.unknown_on_5xx = t->job->call.unknown_on_5xx,
		.gone_is_done = t->job->action->gone_is_done,
		.keyed = t->job->action->effect == EFFECT_KEYED,
		.in_doubt = t->job->call.in_doubt,
		.outcomes = &t->job->action->outcomes,
		.fault = fault_of(t, code),
		.status = status_of(t),
		.body = strbuf_slice(&t->reply),
		.made = &t->made,
	};

	if (was_refused(t))
		return verdict_say(ACT_FAILED_FOR_GOOD, words,
				   "nothing was sent: address not allowed: %s (%s), see outbound.allow",
				   t->refused_address, t->refusal);
	read_head(t, &reply);
	return judge(t, &reply, words);
}

struct verdict transfer_judge_cancelled(struct transfer *t, struct strbuf *words)
{
	return judge(t, &(struct reply){.sent = t->requests > 0, .fault = "the call was cancelled"}, words);
}
