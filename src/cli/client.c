/*
 * See client.h. A question goes through these hands:
 *
 *   parse_server ─▶ link_open ─▶ link_send ─▶ receive (wire_scan_response, wire_body_read) ─▶ judge
 */
#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "cli/link.h"
#include "cli/question.h"
#include "cli/table.h"
#include "flow/api_key.h"
#include "gate/policy.h"
#include "model/text.h"
#include "model/url.h"
#include "wire/address.h"
#include "wire/body.h"
#include "wire/charset.h"

#define ANSWER_BYTES_MAX (64u << 20)
#define REQUEST_BYTES_MAX (32u << 20)
#define PATH_BYTES_MAX 8000
#define ARENA_BYTES_MAX (256u << 20)
#define HEAD_BYTES_MAX (64u << 10)
#define FIELDS_MAX 100
#define PIECE_BYTES (64u << 10)
#define KEY_FILE_BYTES_MAX 4096

/* ---- the options ---- */

/* HOST[:PORT][/], after url_check() has seen to the form of host and port. */
static enum hx_code cut_server(struct client *c, struct slice rest, struct hx_error *err)
{
	const char *slash = memchr(rest.p, '/', rest.n), *port;
	bool bracketed = rest.p[0] == '[';
	struct slice host;

	c->authority = slice_of(rest.p, slash ? (size_t)(slash - rest.p) : rest.n);
	if (rest.n > c->authority.n + 1 || memchr(c->authority.p, '?', c->authority.n))
		return error_set(err, HX_VALIDATION_ERROR, "--%s %s: nothing may stand after the address", c->flag,
				 excerpt_of(slice_str(c->server)).text);
	port = memrchr(c->authority.p, bracketed ? ']' : ':', c->authority.n);
	host = slice_of(c->authority.p + bracketed,
			(port ? (size_t)(port - c->authority.p) : c->authority.n) - bracketed);
	if (port && bracketed)
		port = port + 1 < c->authority.p + c->authority.n ? port + 1 : NULL;
	if (host.n == 0 || host.n >= sizeof c->host)
		return error_set(err, HX_VALIDATION_ERROR, "--%s %s: the host is missing or too long", c->flag,
				 excerpt_of(slice_str(c->server)).text);
	snprintf(c->host, sizeof c->host, "%.*s", SLICE_ARGS(host));
	snprintf(c->port, sizeof c->port, "%.*s", port ? (int)(c->authority.p + c->authority.n - port - 1) : 3,
		 port        ? port + 1
		 : c->secure ? "443"
			     : "80");
	return HX_OK;
}

static enum hx_code parse_server(struct client *c, struct hx_error *err)
{
	static const char http[] = "http://", https[] = "https://";
	struct slice url = slice_str(c->server);

	size_t scheme_n = strlen(http);

	c->secure = strncmp(c->server, https, strlen(https)) == 0;
	if (c->secure)
		scheme_n = strlen(https);
	else if (strncmp(c->server, http, strlen(http)) != 0)
		return error_set(err, HX_VALIDATION_ERROR, "--%s %s: write it as http://HOST:PORT or https://HOST:PORT",
				 c->flag, excerpt_of(url).text);
	if (url_check(url, err))
		return error_set(err, HX_VALIDATION_ERROR, "--%s: %s", c->flag, err->detail);
	return cut_server(c, slice_of(url.p + scheme_n, url.n - scheme_n), err);
}

/* What goes into a header field must not be able to begin another one. */
static enum hx_code add_header(struct client *c, const struct command_option *option, const char *value,
			       struct hx_error *err)
{
	if (!chars_are(slice_str(value), CHAR_VALUE))
		return error_set(err, HX_VALIDATION_ERROR, "--%s: control characters are not part of a name: %s",
				 option->name, excerpt_of(slice_str(value)).text);
	strbuf_addf(&c->headers, "%s: %s\r\n", option->to.name, value);
	return HX_OK;
}

static enum hx_code add_headers(struct client *c, const struct command_args *args, struct hx_error *err)
{
	const struct command_option *option;
	enum hx_code code = HX_OK;

	for (size_t i = 0; (option = command_option(args->command, i)) && !code; i++)
		if (option->to.kind == PLACE_HEADER && args->values[i])
			code = add_header(c, option, args->values[i], err);
	return code;
}

static enum hx_code check_utf8(const char *what, const char *text, struct hx_error *err)
{
	if (utf8_valid_bytes(slice_str(text)) == strlen(text))
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR, "%s is not UTF-8: %s", what, excerpt_of(slice_str(text)).text);
}

/* In JSON such bytes would become others, and two keys one. Only files may be called anything. */
static enum hx_code check_texts(const struct command_args *args, struct hx_error *err)
{
	const struct command_option *option;
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < args->operands_n && !code; i++)
		code = check_utf8("what stands on the command line", args->operands[i], err);
	for (size_t i = 0; (option = command_option(args->command, i)) && !code; i++)
		if (args->values[i] && option->value && strcmp(option->value, "FILE") != 0 &&
		    strcmp(option->value, "JSON") != 0)
			code = check_utf8(option->name, args->values[i], err);
	return code;
}

static enum hx_code take_key(struct client *c, struct slice text, const char *from, struct hx_error *err)
{
	int64_t id;

	while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (!api_key_parse(text, &id)) /* what it is instead is not shown: it may be a secret all the same */
		return error_set(err, HX_VALIDATION_ERROR, "%s is not an API key, which looks like hx_…", from);
	c->api_key = arena_copy(&c->arena, text).p;
	return c->api_key ? HX_OK : arena_error(&c->arena, err);
}

static enum hx_code client_read_key(struct client *c, const char *path, struct hx_error *err)
{
	const char *env = getenv("HAPAX_KEY");
	enum hx_code code;

	if (!path)
		return env && *env ? take_key(c, slice_str(env), "HAPAX_KEY", err) : HX_OK;
	LOCAL_STRBUF(text, KEY_FILE_BYTES_MAX);
	code = question_read_file(path, &text, err);
	return code ? code : take_key(c, strbuf_slice(&text), "what is in --key-file", err);
}

/* A server of the engine; its key is told to nobody but it. */
static enum hx_code init_server(struct client *c, const struct command_args *args, struct hx_error *err)
{
	enum hx_code code;

	c->server = command_value(args, c->flag = "server");
	c->program = "hapax serve";
	code = check_texts(args, err);
	if (!code)
		code = parse_server(c, err);
	if (!code)
		code = add_headers(c, args, err);
	return code ? code : client_read_key(c, command_value(args, "key-file"), err);
}

/* The admin address of a gate. */
static enum hx_code init_gate(struct client *c, const struct command_args *args, struct hx_error *err)
{
	const char *admin = command_value(args, c->flag = "admin");
	struct address address;
	struct hx_error wrong;
	enum hx_code code;

	c->server = text_printf(&c->arena, "http://%s", admin);
	c->program = "hapax gate --admin";
	c->key_env = "HAPAX_GATE_ADMIN_KEY";
	c->api_key = getenv(c->key_env);
	if (c->api_key && !gate_admin_key_is_good(slice_str(c->api_key)))
		c->api_key = NULL; /* empty, or nothing that a gate can have */
	code = c->server ? parse_server(c, err) : arena_error(&c->arena, err);
	if (!code && address_parse(admin, &wrong, &address))
		code = error_set(err, HX_VALIDATION_ERROR, "--admin: %s", wrong.detail);
	return code;
}

static void init_memory(struct client *c)
{
	arena_init(&c->arena, ARENA_BYTES_MAX);
	strbuf_init(&c->path, PATH_BYTES_MAX);
	strbuf_init(&c->headers, HEAD_BYTES_MAX);
	strbuf_init(&c->body, REQUEST_BYTES_MAX);
	strbuf_init(&c->answer, ANSWER_BYTES_MAX);
}

enum hx_code client_init_own(struct client *c, const char *server, int64_t timeout_ms, struct hx_error *err)
{
	*c = (struct client){
		.server = server, .flag = "server", .program = "hapax serve", .timeout_ms = timeout_ms, .json = true};
	init_memory(c);
	return parse_server(c, err);
}

enum hx_code client_init(struct client *c, const struct command_args *args, struct hx_error *err)
{
	enum hx_code code;

	*c = (struct client){.server = "", .json = command_value(args, "json")};
	init_memory(c);
	code = duration_parse("--timeout", slice_str(command_value(args, "timeout")), err, &c->timeout_ms);
	if (code)
		return code;
	return args->command->to_gate ? init_gate(c, args, err) : init_server(c, args, err);
}

void client_release(struct client *c)
{
	strbuf_release(&c->path);
	strbuf_release(&c->headers);
	strbuf_release(&c->body);
	strbuf_release(&c->answer);
	arena_release(&c->arena);
}

/* ---- the path ---- */

void client_path(struct client *c, const char *text)
{
	strbuf_add_str(&c->path, text);
}

/* Unreserved characters (RFC 3986) stay, every other byte is escaped. */
void client_encoded(struct client *c, const char *text)
{
	for (; *text; text++)
		if (char_is(*text, CHAR_HOST))
			strbuf_add_char(&c->path, *text);
		else
			strbuf_addf(&c->path, "%%%02X", (unsigned char)*text);
}

void client_segment(struct client *c, const char *text)
{
	strbuf_add_char(&c->path, '/');
	client_encoded(c, text);
}

void client_query(struct client *c, const char *name, const char *value)
{
	strbuf_addf(&c->path, "%c%s=", memchr(c->path.p, '?', c->path.n) ? '&' : '?', name);
	client_encoded(c, value);
}

void client_next(struct client *c, const char *path)
{
	strbuf_reset(&c->path);
	strbuf_reset(&c->body);
	strbuf_reset(&c->answer);
	c->key = NULL;
	strbuf_add_str(&c->path, path);
}

struct slice client_member(struct client *c, struct json object, const char *name)
{
	return text_of_member(object, name, &c->arena);
}

/* ---- the question ---- */

static void add_request(const struct client *c, const char *method, struct strbuf *out)
{
	strbuf_addf(out, "%s %s HTTP/1.1\r\nHost: %.*s\r\n", method, c->path.p, SLICE_ARGS(c->authority));
	strbuf_addf(out, "User-Agent: hapax/%s\r\nConnection: close\r\n", hx_version());
	if (c->api_key)
		strbuf_addf(out, "Authorization: Bearer %s\r\n", c->api_key);
	strbuf_add_slice(out, strbuf_slice(&c->headers));
	if (c->key)
		strbuf_addf(out, "Idempotency-Key: %s\r\n", c->key);
	if (strcmp(method, "GET") != 0)
		strbuf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", c->body.n);
	strbuf_add_str(out, "\r\n");
	strbuf_add_slice(out, strbuf_slice(&c->body));
}

/* ---- the answer ---- */

struct reading {
	struct strbuf head;
	size_t start; /* of the head that counts: after those of 1xx */
	struct wire_scan scan;
	bool in_body;
	struct wire_body body;
	int status;
};

static enum wire_verdict read_body(struct reading *r, struct slice in, struct strbuf *answer, struct wire_error *err)
{
	enum wire_verdict verdict;

	do {
		struct slice data;
		size_t used;

		verdict = wire_body_read(&r->body, in, &used, &data, err);
		strbuf_add_slice(answer, data);
		in = slice_of(in.p + used, in.n - used);
	} while (verdict == WIRE_MORE && in.n > 0);
	return verdict;
}

static enum wire_verdict parse_head(struct reading *r, struct wire_error *err)
{
	struct wire_field fields[FIELDS_MAX];
	struct wire_response response;

	if (wire_response_parse(wire_scan_head(&r->scan, r->head.p + r->start), /* to_head= */ false, fields, &response,
				err) == WIRE_BAD)
		return WIRE_BAD;
	r->status = response.status;
	wire_body_init(&r->body, &response.head, /* is_response= */ true);
	return WIRE_DONE;
}

static enum wire_verdict read_head(struct reading *r, struct strbuf *answer, struct wire_error *err)
{
	static const struct wire_limits limits = {8192, HEAD_BYTES_MAX, FIELDS_MAX};
	enum wire_verdict verdict;

	for (;;) {
		struct slice rest = slice_of(r->head.p + r->start, r->head.n - r->start);

		verdict = wire_scan_response(&r->scan, rest, &limits, err);
		if (verdict != WIRE_DONE)
			return verdict;
		if (parse_head(r, err) == WIRE_BAD)
			return WIRE_BAD;
		r->start += r->scan.at;
		if (r->status >= 200)
			break;
		r->scan = (struct wire_scan){0};
	}
	r->in_body = true;
	return read_body(r, slice_of(r->head.p + r->start, r->head.n - r->start), answer, err);
}

static enum wire_verdict read_piece(struct reading *r, struct slice in, struct strbuf *answer, struct wire_error *err)
{
	if (r->in_body)
		return read_body(r, in, answer, err);
	strbuf_add_slice(&r->head, in);
	if (r->head.failed)
		return wire_bad(err, HX_BAD_GATEWAY, "the head of the answer is too large");
	return read_head(r, answer, err);
}

/* DONE: all of it. MORE: it broke off, errno says why, or is 0 when the server closed. */
static enum wire_verdict client_receive(struct link *link, struct mono_time deadline, struct reading *r,
					struct strbuf *answer, struct wire_error *err)
{
	char piece[PIECE_BYTES];
	enum wire_verdict verdict = WIRE_MORE;

	while (verdict == WIRE_MORE && !answer->failed) {
		ssize_t n = link_receive(link, piece, sizeof piece, deadline);

		errno = n == 0 ? 0 : errno;
		if (n <= 0)
			return n == 0 && r->in_body && wire_body_closed(&r->body, err) == WIRE_DONE ? WIRE_DONE
												    : WIRE_MORE;
		verdict = read_piece(r, slice_of(piece, (size_t)n), answer, err);
	}
	return verdict;
}

/* ---- what it means ---- */

static bool code_of_name(struct json name, enum hx_code *ret_code)
{
	for (int code = 0; code < HX_CODE_COUNT; code++)
		if (json_string_is(name, slice_str(hx_code_name((enum hx_code)code)))) {
			*ret_code = (enum hx_code)code;
			return code != HX_OK;
		}
	return false;
}

/* A newer server may have codes that this program does not know: then the status says which way to leave. */
static enum hx_code code_of_status(int status)
{
	for (int code = 1; code < HX_CODE_COUNT; code++)
		if (hx_code_http_status((enum hx_code)code) == status)
			return (enum hx_code)code;
	return status < 500 ? HX_VALIDATION_ERROR : HX_INTERNAL;
}

/* The detail in words, and what the action said with its rejection. */
static void add_detail(struct client *c, enum hx_code code, struct json problem, struct strbuf *words)
{
	struct json member;

	if (json_find(problem, slice_str("detail"), &member) && json_type(member) == JSON_STRING)
		text_add_shown(words, json_string_decode(member, &c->arena));
	else
		strbuf_add_str(words, hx_code_text(code));
	if (json_find(problem, slice_str("output"), &member)) {
		strbuf_add_str(words, ": ");
		text_add_shown(words, member.raw);
	}
}

/* After the words stands the code, for those who look it up; long words are cut, not the code. */
static enum hx_code tell_problem(struct client *c, int status, struct json problem, struct json name,
				 struct hx_error *err)
{
	enum hx_code code;
	size_t room;

	if (!code_of_name(name, &code))
		code = code_of_status(status);
	LOCAL_STRBUF(words, ANSWER_BYTES_MAX);
	LOCAL_STRBUF(status_and_name, sizeof err->detail / 2);
	add_detail(c, code, problem, &words);
	if (code == HX_UNAUTHENTICATED && !c->api_key)
		strbuf_addf(&words, "; here: %s", c->key_env ? c->key_env : "HAPAX_KEY, or --key-file FILE");
	if (!c->json) {
		strbuf_addf(&status_and_name, " (%d ", status);
		text_add_shown(&status_and_name, json_string_decode(name, &c->arena));
		strbuf_add_char(&status_and_name, ')');
	}
	room = sizeof err->detail - 1 - status_and_name.n;
	if (words.n <= room)
		error_set(err, code, "%s%s", words.p, status_and_name.p);
	else
		error_set(err, code, "%.*s...%s", (int)utf8_cut(slice_of(words.p, room - 3)), words.p,
			  status_and_name.p);
	return code;
}

static enum hx_code client_judge(struct client *c, int status, struct json *ret_answer, struct hx_error *err)
{
	struct json answer, name;
	bool is_json = json_check(strbuf_slice(&c->answer), /* err= */ NULL, &answer) == HX_OK;

	if (status == 204) { /* done, and nothing to say about it */
		*ret_answer = json_trust(slice_str("{}"));
		return HX_OK;
	}
	if (is_json && status >= 200 && status < 300) {
		*ret_answer = answer;
		return HX_OK;
	}
	if (is_json && json_type(answer) == JSON_OBJECT && json_find(answer, slice_str("code"), &name) &&
	    json_type(name) == JSON_STRING)
		return tell_problem(c, status, answer, name, err);
	return error_set(err, HX_BAD_GATEWAY, "%s answered with status %d, and not as a hapax server does", c->server,
			 status);
}

/* No complete answer. Only what has left completely can have been done. */
static enum hx_code tell_silence(const struct client *c, bool sent, bool only_reads, struct hx_error *err)
{
	char after[DURATION_TEXT_BYTES];
	bool late = errno == ETIMEDOUT;
	const char *why = errno ? strerror(errno) : "it closed the connection";

	duration_format(c->timeout_ms, after);
	if (late && only_reads)
		return error_set(err, HX_SERVER_UNAVAILABLE, "%s did not answer within %s", c->server, after);
	if (!sent || only_reads)
		return error_set(err, HX_SERVER_UNAVAILABLE, "%s went away (%s)%s", c->server, why,
				 only_reads ? "" : " before the request had arrived: nothing was done");
	if (late)
		return error_set(err, HX_OUTCOME_UNKNOWN,
				 "%s did not answer within %s: it is not known whether this took effect", c->server,
				 after);
	return error_set(err, HX_OUTCOME_UNKNOWN,
			 "%s went away before it answered (%s): it is not known whether this took effect", c->server,
			 why);
}

static enum hx_code exchange(struct client *c, struct link *link, struct slice request, bool only_reads,
			     struct mono_time deadline, struct reading *r, struct hx_error *err)
{
	struct wire_error wrong;
	bool sent = link_send(link, request, deadline);

	switch (client_receive(link, deadline, r, &c->answer, &wrong)) {
	case WIRE_DONE:
		return HX_OK;
	case WIRE_BAD:
		return error_set(err, HX_BAD_GATEWAY, "%s: %s", c->server, wrong.reason);
	case WIRE_MORE:
		break;
	}
	if (c->answer.failed)
		return strbuf_error(&c->answer, err);
	return tell_silence(c, sent, only_reads, err);
}

static enum hx_code open_link(const struct client *c, struct link *link, struct mono_time deadline,
			      struct hx_error *err)
{
	char authority[CLIENT_HOST_BYTES_MAX + 16];
	struct link_target to = {
		.url = c->server,
		.host = c->host,
		.port = c->port,
		.authority = authority,
		.program = c->program,
		.secure = c->secure,
	};

	snprintf(authority, sizeof authority, "%.*s", SLICE_ARGS(c->authority));
	return link_open(link, &to, deadline, err);
}

enum hx_code client_ask(struct client *c, const char *method, struct json *ret_answer, struct hx_error *err)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), c->timeout_ms);
	struct reading reading = {0};
	enum hx_code code;
	struct link link = {.fd = -1};

	strbuf_init(&reading.head, HEAD_BYTES_MAX + PIECE_BYTES);
	LOCAL_STRBUF(request, REQUEST_BYTES_MAX + PATH_BYTES_MAX + HEAD_BYTES_MAX);
	add_request(c, method, &request);
	if (c->path.failed || c->headers.failed || c->body.failed || request.failed)
		code = error_set(err, HX_TOO_LARGE, "the request would be too large");
	else
		code = open_link(c, &link, deadline, err);
	if (!code)
		code = exchange(c, &link, strbuf_slice(&request), strcmp(method, "GET") == 0, deadline, &reading, err);
	if (!code)
		code = client_judge(c, reading.status, ret_answer, err);
	link_close(&link);
	strbuf_release(&reading.head);
	return code;
}
