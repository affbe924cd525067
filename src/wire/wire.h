/*
 * Heads of HTTP/1.1 messages, read strictly: requests for the server and the gate, responses for the gate's
 * upstreams. Pure functions over bytes that somebody else holds; nothing is allocated. Bodies are body.h's.
 *
 *   bytes ──▶ wire_scan_*()   looks at each byte once, line by line, as they arrive; MORE until the head ends
 *         ──▶ wire_*_parse()  cuts the complete head into slices and decides where the body ends
 *
 * Between two calls of a scan the buffer may grow and move: a scan remembers offsets only. The verdict depends on
 * the bytes, never on the pieces in which they came: the scan judges byte by byte in their order, and the parse
 * sees the head as a whole.
 *
 * Two parsers that read one message differently are how requests are smuggled past a gate, so whatever could be
 * read in two ways is refused, also where the RFC lets a recipient repair it:
 *
 *   lines      end with CRLF; a bare CR or LF, NUL or another control byte (but HTAB) ends the conversation
 *   fields     NAME ":" OWS VALUE OWS; no folded line, no space before the colon, no empty name
 *   host       exactly one in HTTP/1.1, at most one in 1.0: a name, IPv4 address or [IPv6] and a port
 *   length     Content-Length once, digits, at most 2^63-1; Transfer-Encoding once and exactly
 *              `chunked`; never both; no Transfer-Encoding in HTTP/1.0
 *   target     /path?query; http://host/path?query if the host is that of the Host field; * for OPTIONS.
 *              Complete escapes in the path, no fragment. CONNECT is 501.
 *   version    HTTP/1.0 and HTTP/1.1, others 505
 *
 * One empty line in front of a request is skipped, as RFC 9112 wants it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

/* MORE: the bytes so far are a beginning. DONE: complete. BAD: refused, *err says why; nothing more is read. */
enum wire_verdict { WIRE_MORE, WIRE_DONE, WIRE_BAD };

/*
 * The code has the HTTP status that a client is answered with: 400, 414, 417, 431, 501, 505 for requests; 502 for
 * whatever an upstream does wrong. The reason is a constant sentence. Both are set only with WIRE_BAD.
 */
struct wire_error {
	enum hx_code code;
	const char *reason;
};

struct wire_limits {
	size_t line_bytes; /* the first line, without its CRLF */
	size_t head_bytes; /* all of the head, with the empty line */
	size_t fields;
};

struct wire_field {
	struct slice name;
	struct slice value; /* without white space around it; may hold bytes above 0x7f, and be empty */
};

struct wire_fields {
	const struct wire_field *at;
	size_t n;
};

/* Zero it before the first byte of a head. */
struct wire_scan {
	size_t start; /* where the head begins: after the empty line that was skipped, if one was */
	size_t line;  /* where the line begins that is not complete yet */
	size_t at;    /* the next byte to look at; when DONE: where the head ends */
	size_t lines; /* complete ones: the first line and the fields */
};

/* The buffer is all bytes since the scan was zeroed. After DONE or BAD a scan is used up. */
enum wire_verdict wire_scan_request(struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits,
				    struct wire_error *err) HX_MUST_CHECK;
enum wire_verdict wire_scan_response(struct wire_scan *scan, struct slice buffer, const struct wire_limits *limits,
				     struct wire_error *err) HX_MUST_CHECK;

/* How many fields the head has that this scan found. */
static inline size_t wire_scan_fields(const struct wire_scan *scan)
{
	return scan->lines - 1;
}

/* The head that a scan found, in the same bytes or in a copy of them. */
static inline struct slice wire_scan_head(const struct wire_scan *scan, const char *buffer)
{
	return slice_of(buffer + scan->start, scan->at - scan->start);
}

enum wire_framing {
	WIRE_NO_BODY,
	WIRE_LENGTH,      /* `length` bytes */
	WIRE_CHUNKED,     /* see chunk.h */
	WIRE_UNTIL_CLOSE, /* responses only */
};

/* What requests and responses have in common. */
struct wire_head {
	unsigned minor; /* of HTTP/1.minor */
	struct wire_fields fields;
	enum wire_framing framing;
	bool has_length; /* there is a Content-Length, also where there is no body (HEAD, 304) */
	uint64_t length;
	bool keep_alive; /* the sender is willing to go on after this message */
};

enum wire_form { WIRE_ORIGIN, WIRE_ABSOLUTE, WIRE_ASTERISK };

struct wire_request {
	struct wire_head head;
	struct slice method; /* any token */
	struct slice target; /* as it was sent */
	enum wire_form form;
	struct slice path;  /* not decoded; "/" for http://host, "*" in asterisk-form */
	struct slice query; /* after the first "?", not decoded */
	bool has_query;
	struct slice host; /* with its port; empty in HTTP/1.0 without one */
	bool expect_continue;
};

struct wire_response {
	struct wire_head head;
	int status; /* 100 to 599. Below 200 another head follows, but after 101: from there on it is another protocol */
	struct slice reason;
};

/*
 * The head is one that a scan of the same kind found; fields[] has room for wire_scan_fields() and must live as
 * long as the result, as must the head. DONE or BAD.
 */
enum wire_verdict wire_request_parse(struct slice head, struct wire_field fields[], struct wire_request *ret_request,
				     struct wire_error *err) HX_MUST_CHECK;
/* `to_head`: the request was a HEAD, so no body follows whatever the fields say. */
enum wire_verdict wire_response_parse(struct slice head, bool to_head, struct wire_field fields[],
				      struct wire_response *ret_response, struct wire_error *err) HX_MUST_CHECK;

/* The first field of this name (in any case), or NULL. *ret_count, if not NULL, is how many there are. */
const struct wire_field *wire_find(struct wire_fields fields, const char *name, size_t *ret_count);

/* Does any field of this name have this token in its list, in any case? E.g. "Connection" and "close". */
bool wire_has_token(struct wire_fields fields, const char *name, struct slice token);

/* WIRE_BAD, with its error; for those who read messages. */
enum wire_verdict wire_bad(struct wire_error *err, enum hx_code code, const char *reason);
