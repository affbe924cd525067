/*
 * Heads: the scan over arriving bytes, the fields, and where a body ends. See wire.h for what is refused and why.
 *
 * The scan holds back nothing that it could say already: a first line or field that is wrong is refused when its
 * CRLF is there, a wrong byte at once. The parse then cuts lines that are known to be good; splitting each line
 * twice is cheaper than remembering places in a buffer that moves.
 */
#include "wire/wire.h"

#include "base/digits.h"
#include "wire/charset.h"
#include "wire/target.h"

enum wire_verdict wire_bad(struct wire_error *err, enum hx_code code, const char *reason)
{
	err->code = code;
	err->reason = reason;
	return WIRE_BAD;
}

static enum wire_verdict bad_request(struct wire_error *err, const char *reason)
{
	return wire_bad(err, HX_BAD_REQUEST, reason);
}

/* ---- one line ---- */

/* The bytes of the line are CHAR_VALUE, by the scan. NULL, or what is wrong. */
static const char *split_field(struct slice line, struct wire_field *ret_field)
{
	size_t n = 0;

	while (n < line.n && char_is(line.p[n], CHAR_TOKEN))
		n++;
	if (n == line.n)
		return "a header line has no colon";
	if (line.p[n] != ':') {
		bool space = line.p[n] == ' ' || line.p[n] == '\t';

		if (n == 0 && space)
			return "a header line is folded";
		return space ? "white space in or after a field name" : "a field name has a byte that is not allowed";
	}
	if (n == 0)
		return "a header line begins with a colon";
	ret_field->name = slice_of(line.p, n);
	ret_field->value = slice_trim(slice_of(line.p + n + 1, line.n - n - 1));
	return NULL;
}

/* "HTTP/1.0" and "HTTP/1.1" give their minor number; another well-formed version is *ret_other. */
static bool parse_version(struct slice text, unsigned *ret_minor, bool *ret_other)
{
	*ret_other = false;
	if (text.n != 8 || memcmp(text.p, "HTTP/", 5) != 0 || !char_is(text.p[5], CHAR_DIGIT) || text.p[6] != '.' ||
	    !char_is(text.p[7], CHAR_DIGIT))
		return false;
	*ret_minor = hex_value(text.p[7]);
	*ret_other = text.p[5] != '1' || *ret_minor > 1;
	return !*ret_other;
}

/* method SP target SP version, with single spaces: a second one lands in a target or a version, and is refused there. */
static enum wire_verdict parse_request_line(struct slice line, struct wire_request *ret, struct wire_error *err)
{
	const char *end = line.p + line.n;
	const char *one = memchr(line.p, ' ', line.n);
	const char *two = one ? memrchr(one + 1, ' ', (size_t)(end - one) - 1) : NULL;
	bool other;

	if (!two)
		return bad_request(err, "the request line is not: method, target, version");
	ret->method = slice_of(line.p, (size_t)(one - line.p));
	ret->target = slice_of(one + 1, (size_t)(two - one) - 1);
	if (!is_token(ret->method))
		return bad_request(err, "the method is not a token");
	if (!parse_version(slice_of(two + 1, (size_t)(end - two) - 1), &ret->head.minor, &other))
		return other ? wire_bad(err, HX_VERSION_NOT_SUPPORTED, "neither HTTP/1.0 nor HTTP/1.1")
			     : bad_request(err, "the request line does not end with an HTTP version");
	if (slice_is(ret->method, "CONNECT"))
		return wire_bad(err, HX_NOT_IMPLEMENTED, "CONNECT is not offered");

	const char *wrong = target_parse(ret);

	return wrong ? bad_request(err, wrong) : WIRE_DONE;
}

/* version SP 3DIGIT SP reason; without a reason its space may be missing, too, as many services send it. */
static enum wire_verdict parse_status_line(struct slice line, struct wire_response *ret, struct wire_error *err)
{
	bool other;

	if (line.n < 12 || !parse_version(slice_of(line.p, 8), &ret->head.minor, &other) || line.p[8] != ' ' ||
	    !chars_are(slice_of(line.p + 9, 3), CHAR_DIGIT) || (line.n > 12 && line.p[12] != ' '))
		return bad_request(err, "the status line is not: HTTP/1.0 or 1.1, three digits, reason");
	ret->status = (line.p[9] - '0') * 100 + (line.p[10] - '0') * 10 + (line.p[11] - '0');
	ret->reason = line.n > 12 ? slice_of(line.p + 13, line.n - 13) : slice_of(NULL, 0);
	if (ret->status < 100 || ret->status > 599)
		return bad_request(err, "the status is not from 100 to 599");
	return WIRE_DONE;
}

/* ---- the scan ---- */

enum kind { REQUEST, RESPONSE };

static enum wire_verdict check_first_line(enum kind kind, struct slice line, struct wire_error *err)
{
	struct wire_request request = {0};
	struct wire_response response = {0};

	return kind == REQUEST ? parse_request_line(line, &request, err) : parse_status_line(line, &response, err);
}

/* A line that is complete: DONE if it was the empty one, MORE if the head goes on. */
static enum wire_verdict take_line(struct wire_scan *scan, enum kind kind, struct slice line,
				   const struct wire_limits *limits, struct wire_error *err)
{
	struct wire_field field;
	const char *wrong;

	if (line.n == 0 && scan->lines > 0)
		return WIRE_DONE;
	if (line.n == 0 && kind == REQUEST && scan->line == 0) {
		scan->start = 2;
		return WIRE_MORE;
	}
	if (scan->lines++ == 0)
		return check_first_line(kind, line, err) == WIRE_BAD ? WIRE_BAD : WIRE_MORE;
	if (wire_scan_fields(scan) > limits->fields)
		return wire_bad(err, HX_HEAD_TOO_LARGE, "there are too many header fields");
	wrong = split_field(line, &field);
	return wrong ? bad_request(err, wrong) : WIRE_MORE;
}

/* Steps over what may stand in a line, as far as the limits allow to look. */
static void skip_line_bytes(struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits)
{
	size_t end = buffer.n < limits->head_bytes ? buffer.n : limits->head_bytes;

	if (scan->lines == 0 && end > scan->line && end - scan->line > limits->line_bytes)
		end = scan->line + limits->line_bytes;
	while (scan->at < end && char_is(buffer.p[scan->at], CHAR_VALUE))
		scan->at++;
}

/* The byte at scan->at ends a line, passes a limit, or is wrong. MORE with *ret_line: a line ends here. */
static enum wire_verdict end_line(const struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits,
				  struct slice *ret_line, struct wire_error *err)
{
	char c = buffer.p[scan->at];

	if (scan->at >= limits->head_bytes || (c == '\r' && limits->head_bytes - scan->at < 2))
		return wire_bad(err, HX_HEAD_TOO_LARGE, "the head is too large");
	if (char_is(c, CHAR_VALUE))
		return wire_bad(err, HX_URI_TOO_LONG, "the first line is too long");
	if (c == '\n')
		return bad_request(err, "a line ends without CR");
	if (c != '\r')
		return bad_request(err, "there is a control character in the head");
	if (scan->at + 1 == buffer.n)
		return WIRE_MORE;
	if (buffer.p[scan->at + 1] != '\n')
		return bad_request(err, "there is a CR without LF in the head");
	*ret_line = slice_of(buffer.p + scan->line, scan->at - scan->line);
	return WIRE_MORE;
}

static enum wire_verdict scan_head(struct wire_scan *scan, enum kind kind, struct slice buffer,
				   const struct wire_limits *limits, struct wire_error *err)
{
	while (scan->at < buffer.n) {
		struct slice line = {NULL, 0};
		enum wire_verdict verdict;

		skip_line_bytes(scan, buffer, limits);
		if (scan->at == buffer.n)
			break;
		verdict = end_line(scan, buffer, limits, &line, err);
		if (verdict == WIRE_BAD || !line.p)
			return verdict;
		verdict = take_line(scan, kind, line, limits, err);
		scan->at += 2;
		scan->line = scan->at;
		if (verdict != WIRE_MORE)
			return verdict;
	}
	return WIRE_MORE;
}

enum wire_verdict wire_scan_request(struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits,
				    struct wire_error *err)
{
	return scan_head(scan, REQUEST, buffer, limits, err);
}

enum wire_verdict wire_scan_response(struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits,
				     struct wire_error *err)
{
	enum wire_verdict verdict = scan_head(scan, RESPONSE, buffer, limits, err);

	if (verdict == WIRE_BAD)
		err->code = HX_BAD_GATEWAY;
	return verdict;
}

/* ---- what the fields say ---- */

/* The fields that decide about a message. Each struct slice is that of the last field of its name. */
struct facts {
	size_t hosts, lengths, codings, expects;
	struct slice host, length, coding, expect;
	bool close, keep_alive, odd_connection;
};

static void take_connection(struct facts *facts, struct slice rest)
{
	struct slice item;

	while (slice_list_next(&rest, &item)) {
		facts->close |= slice_is_nocase(item, "close");
		facts->keep_alive |= slice_is_nocase(item, "keep-alive");
		facts->odd_connection |= !is_token(item);
	}
}

static void wire_note(const struct wire_field *field, const char *name, size_t *count, struct slice *value)
{
	if (!slice_is_nocase(field->name, name))
		return;
	*value = field->value;
	(*count)++;
}

static void take_fact(struct facts *facts, const struct wire_field *field)
{
	switch (field->name.n) {
	case sizeof "Host" - 1:
		wire_note(field, "host", &facts->hosts, &facts->host);
		break;
	case sizeof "Expect" - 1:
		wire_note(field, "expect", &facts->expects, &facts->expect);
		break;
	case sizeof "Connection" - 1:
		if (slice_is_nocase(field->name, "connection"))
			take_connection(facts, field->value);
		break;
	case sizeof "Content-Length" - 1:
		wire_note(field, "content-length", &facts->lengths, &facts->length);
		break;
	case sizeof "Transfer-Encoding" - 1:
		wire_note(field, "transfer-encoding", &facts->codings, &facts->coding);
		break;
	}
}

/* Cuts the lines after the first one, which it returns, and gathers what they say. */
static struct slice cut_head(struct slice head, struct wire_field fields[], struct wire_head *ret, struct facts *facts)
{
	const char *p = head.p, *end = head.p + head.n;
	struct slice first = {NULL, 0};
	size_t n = 0;

	for (;;) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));

		ASSERT(lf && lf > p); /* a scan has found this head */
		struct slice line = slice_of(p, (size_t)(lf - p) - 1);

		p = lf + 1;
		if (line.n == 0)
			break;
		if (!first.p) {
			first = line;
			continue;
		}
		ASSERT(!split_field(line, &fields[n]));
		take_fact(facts, &fields[n++]);
	}
	ASSERT(first.p && p == end);
	ret->fields = (struct wire_fields){fields, n};
	return first;
}

/* 1*DIGIT, so zeros may stand in front (RFC 9110, 8.6); nobody reads those in another base. The length goes on as we write it. */
static const char *parse_length(struct slice text, uint64_t *ret_length)
{
	if (text.n == 0 || !chars_are(text, CHAR_DIGIT))
		return "Content-Length is not a plain number";
	return digits_number(text, INT64_MAX, ret_length) ? NULL : "Content-Length is too large";
}

/* Codings in front of a final `chunked` are well-formed and not offered; anything else has no reliable end. */
static enum wire_verdict check_coding(struct slice value, struct wire_error *err)
{
	struct slice rest = value, item, last = {NULL, 0};
	size_t items = 0, chunked = 0;

	if (slice_is_nocase(value, "chunked"))
		return WIRE_DONE;
	while (slice_list_next(&rest, &item)) {
		if (!is_token(item))
			return bad_request(err, "Transfer-Encoding is not a list of codings");
		chunked += slice_is_nocase(item, "chunked");
		items++;
		last = item;
	}
	if (items < 2 || chunked != 1 || !slice_is_nocase(last, "chunked"))
		return bad_request(err, "Transfer-Encoding does not end with one chunked");
	return wire_bad(err, HX_NOT_IMPLEMENTED, "Transfer-Encoding has another coding than chunked");
}

/* WIRE_NO_BODY stays where the fields name no body. */
static enum wire_verdict decide_framing(const struct facts *facts, struct wire_head *head, struct wire_error *err)
{
	const char *wrong;

	head->framing = WIRE_NO_BODY;
	head->has_length = facts->lengths > 0;
	head->length = 0;
	if (facts->odd_connection)
		return bad_request(err, "Connection is not a list of tokens");
	head->keep_alive = !facts->close && (head->minor == 1 || facts->keep_alive);
	if (facts->lengths && facts->codings)
		return bad_request(err, "both Content-Length and Transfer-Encoding");
	if (facts->lengths > 1 || facts->codings > 1)
		return bad_request(err, "Content-Length or Transfer-Encoding is there twice");
	if (facts->codings && head->minor == 0)
		return bad_request(err, "Transfer-Encoding in HTTP/1.0");
	if (facts->codings) {
		head->framing = WIRE_CHUNKED;
		return check_coding(facts->coding, err);
	}
	if (!facts->lengths)
		return WIRE_DONE;
	head->framing = WIRE_LENGTH;
	wrong = parse_length(facts->length, &head->length);
	return wrong ? bad_request(err, wrong) : WIRE_DONE;
}

/* ---- requests ---- */

static const char *check_host(const struct facts *facts, struct wire_request *request)
{
	if (facts->hosts > 1)
		return "there is more than one Host";
	if (facts->hosts == 0)
		return request->head.minor == 1 ? "there is no Host" : NULL;
	if (!host_valid(facts->host))
		return "Host is not a host";
	if (request->form == WIRE_ABSOLUTE && !slice_eq_nocase(facts->host, request->host))
		return "Host is not the host of the request target";
	request->host = facts->host;
	return NULL;
}

enum wire_verdict wire_request_parse(struct slice head, struct wire_field fields[], struct wire_request *ret_request,
				     struct wire_error *err)
{
	struct wire_request request = {0};
	struct facts facts = {0};
	struct slice line = cut_head(head, fields, &request.head, &facts);
	const char *wrong;

	if (parse_request_line(line, &request, err) == WIRE_BAD)
		return WIRE_BAD;
	wrong = check_host(&facts, &request);
	if (wrong)
		return bad_request(err, wrong);
	if (decide_framing(&facts, &request.head, err) == WIRE_BAD)
		return WIRE_BAD;
	if (facts.expects > 0 && request.head.minor == 1) {
		if (facts.expects > 1 || !slice_is_nocase(facts.expect, "100-continue"))
			return wire_bad(err, HX_EXPECTATION_FAILED, "Expect is not 100-continue");
		request.expect_continue = request.head.framing == WIRE_CHUNKED || request.head.length > 0;
	}
	*ret_request = request;
	return WIRE_DONE;
}

/* ---- responses ---- */

/* The status and the request's method overrule the fields (RFC 9112, 6.3), which must not contradict them. */
static const char *fit_body_to_status(struct wire_response *response, bool to_head)
{
	struct wire_head *head = &response->head;
	bool bodyless = response->status < 200 || response->status == 204;

	if (bodyless && (head->framing == WIRE_CHUNKED || head->length > 0))
		return "the status has no body, but the fields announce one";
	if (bodyless || to_head || response->status == 304)
		head->framing = WIRE_NO_BODY;
	else if (head->framing == WIRE_NO_BODY)
		head->framing = WIRE_UNTIL_CLOSE;
	if (head->framing == WIRE_UNTIL_CLOSE)
		head->keep_alive = false;
	return NULL;
}

enum wire_verdict wire_response_parse(struct slice head, bool to_head, struct wire_field fields[],
				      struct wire_response *ret_response, struct wire_error *err)
{
	struct wire_response response = {0};
	struct facts facts = {0};
	struct slice line = cut_head(head, fields, &response.head, &facts);
	const char *wrong;

	if (parse_status_line(line, &response, err) == WIRE_BAD ||
	    decide_framing(&facts, &response.head, err) == WIRE_BAD) {
		err->code = HX_BAD_GATEWAY;
		return WIRE_BAD;
	}
	wrong = fit_body_to_status(&response, to_head);
	if (wrong)
		return wire_bad(err, HX_BAD_GATEWAY, wrong);
	*ret_response = response;
	return WIRE_DONE;
}

/* ---- looking into fields ---- */

const struct wire_field *wire_find(struct wire_fields fields, const char *name, size_t *ret_count)
{
	const struct wire_field *first = NULL;
	struct slice wanted = slice_str(name);
	size_t count = 0;

	for (size_t i = 0; i < fields.n; i++) {
		if (!slice_eq_nocase(fields.at[i].name, wanted))
			continue;
		if (count++ == 0)
			first = &fields.at[i];
	}
	if (ret_count)
		*ret_count = count;
	return first;
}

bool wire_has_token(struct wire_fields fields, const char *name, struct slice token)
{
	for (size_t i = 0; i < fields.n; i++) {
		struct slice rest = fields.at[i].value, item;

		if (!slice_is_nocase(fields.at[i].name, name))
			continue;
		while (slice_list_next(&rest, &item))
			if (slice_eq_nocase(item, token))
				return true;
	}
	return false;
}
