/*
 * The parser against a table of smuggling and malformed shapes, requests and responses. Each is fed whole, byte by byte,
 * and split at every position, and has to give the same verdict and the same reason each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http/charset.h"
#include "unit/http/reader.h"

static const struct wire_limits limits = {.line_bytes = 120, .head_bytes = 600, .fields = 10};

struct shape {
	const char *name;
	const char *bytes;
	size_t n;
	int status; /* what it is refused with; 0: it is accepted, -1: more is needed */
	enum reader_kind kind;
};

/* clang-format off */
#define REQUEST(name, status, text) {name, text, sizeof(text) - 1, status, READ_REQUEST}
#define RESPONSE(name, status, text) {name, text, sizeof(text) - 1, status, READ_RESPONSE}
#define TO_HEAD(name, status, text) {name, text, sizeof(text) - 1, status, READ_RESPONSE_TO_HEAD}
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define OK_200 "HTTP/1.1 200 OK\r\n"
#define X10 "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10

static const struct shape request_shapes[] = {
	/* lengths that two parsers would read differently */
	REQUEST("length and coding", 400, POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding and length", 400, POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
	REQUEST("length 0 and coding", 400, POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("two lengths", 400, POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
	REQUEST("the same length twice", 400, POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
	REQUEST("the same length twice in a list", 400, POST "Content-Length: 5, 5\r\n\r\nhello"),
	REQUEST("two lengths in a list", 400, POST "Content-Length: 5,6\r\n\r\nhello"),
	REQUEST("length with a plus", 400, POST "Content-Length: +5\r\n\r\nhello"),
	REQUEST("length with a minus", 400, POST "Content-Length: -5\r\n\r\nhello"),
	REQUEST("length minus zero", 400, POST "Content-Length: -0\r\n\r\n"),
	REQUEST("length in hex", 400, POST "Content-Length: 0x5\r\n\r\nhello"),
	REQUEST("length with leading zero", 400, POST "Content-Length: 05\r\n\r\nhello"),
	REQUEST("length of zeros", 400, POST "Content-Length: 00\r\n\r\n"),
	REQUEST("empty length", 400, POST "Content-Length:\r\n\r\n"),
	REQUEST("length of spaces", 400, POST "Content-Length:    \r\n\r\n"),
	REQUEST("length with a space inside", 400, POST "Content-Length: 1 0\r\n\r\nhellohello"),
	REQUEST("length with a fraction", 400, POST "Content-Length: 5.0\r\n\r\nhello"),
	REQUEST("length with an exponent", 400, POST "Content-Length: 5e0\r\n\r\nhello"),
	REQUEST("length in quotes", 400, POST "Content-Length: \"5\"\r\n\r\nhello"),
	REQUEST("length with a comma", 400, POST "Content-Length: 5,\r\n\r\nhello"),
	REQUEST("length in words", 400, POST "Content-Length: five\r\n\r\nhello"),
	REQUEST("length with a digit that is not ASCII", 400, POST "Content-Length: \xd9\xa5\r\n\r\nhello"),
	REQUEST("length above 2^63", 400, POST "Content-Length: 9223372036854775808\r\n\r\n"),
	REQUEST("length above 2^64", 400, POST "Content-Length: 18446744073709551621\r\n\r\nhello"),
	REQUEST("length of forty digits", 400, POST "Content-Length: 1000000000000000000000000000000000000000\r\n\r\n"),
	REQUEST("length with a space before the colon", 400, POST "Content-Length : 5\r\n\r\nhello"),
	REQUEST("length in other case, and coding", 400, POST "CONTENT-LENGTH: 5\r\ntransfer-encoding: chunked\r\n\r\n"),

	/* codings */
	REQUEST("coding twice", 400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding twice in a list", 400, POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("identity", 400, POST "Transfer-Encoding: identity\r\n\r\n"),
	REQUEST("chunked, identity", 400, POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked, gzip", 400, POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
	REQUEST("gzip alone", 400, POST "Transfer-Encoding: gzip\r\n\r\n"),
	REQUEST("gzip, chunked", 501, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("xchunked", 400, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked with a parameter", 400, POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked in quotes", 400, POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked with a comma", 400, POST "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked behind a comma", 400, POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked with a vertical tab", 400, POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked with a form feed", 400, POST "Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n"),
	REQUEST("chunked with a byte above ASCII", 400, POST "Transfer-Encoding: chunked\xa0\r\n\r\n0\r\n\r\n"),
	REQUEST("empty coding", 400, POST "Transfer-Encoding:\r\n\r\n"),
	REQUEST("folded coding", 400, POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding with a space before the colon", 400, POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding with a tab before the colon", 400, POST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding behind a bare LF", 400, POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding behind a bare CR", 400, POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	REQUEST("coding in HTTP/1.0", 400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),

	/* lines and fields */
	REQUEST("folded line with a space", 400, GET "Host: a\r\nX: a\r\n b\r\n\r\n"),
	REQUEST("folded line with a tab", 400, GET "Host: a\r\nX: a\r\n\tb\r\n\r\n"),
	REQUEST("folded first line", 400, GET " Host: a\r\n\r\n"),
	REQUEST("line of white space", 400, GET "Host: a\r\n \r\n\r\n"),
	REQUEST("line that begins with a colon", 400, GET "Host: a\r\n: x\r\n\r\n"),
	REQUEST("line that is a colon", 400, GET ":\r\nHost: a\r\n\r\n"),
	REQUEST("space before the colon", 400, GET "Host : a\r\n\r\n"),
	REQUEST("tab before the colon", 400, GET "Host\t: a\r\n\r\n"),
	REQUEST("space in a name", 400, GET "Host: a\r\nX Y: z\r\n\r\n"),
	REQUEST("no colon", 400, GET "Host: a\r\nnonsense\r\n\r\n"),
	REQUEST("bare LF behind a field", 400, GET "Host: a\nX: y\r\n\r\n"),
	REQUEST("bare LF everywhere", 400, "GET / HTTP/1.1\nHost: a\n\n"),
	REQUEST("bare LF as the empty line", 400, GET "Host: a\r\n\n"),
	REQUEST("bare LF behind the first line", 400, "GET / HTTP/1.1\nHost: a\r\n\r\n"),
	REQUEST("bare CR in a value", 400, GET "Host: a\r\nX: a\rb\r\n\r\n"),
	REQUEST("bare CR in the first line", 400, "GET /\rHTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("CR CR LF", 400, GET "Host: a\r\r\n\r\n"),
	REQUEST("CR as the empty line", 400, GET "Host: a\r\n\rX"),
	REQUEST("NUL in a value", 400, GET "Host: a\r\nX: a\0b\r\n\r\n"),
	REQUEST("NUL in a name", 400, GET "Host: a\r\nX\0: b\r\n\r\n"),
	REQUEST("NUL in the target", 400, "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("NUL first", 400, "\0GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("escape in a value", 400, GET "Host: a\r\nX: \x1b[0m\r\n\r\n"),
	REQUEST("DEL in a value", 400, GET "Host: a\r\nX: \x7f\r\n\r\n"),
	REQUEST("a byte above ASCII in a name", 400, GET "Host: a\r\nX\xff: y\r\n\r\n"),
	REQUEST("name with a slash", 400, GET "Host: a\r\nX/Y: z\r\n\r\n"),
	REQUEST("name with brackets", 400, GET "Host: a\r\n[X]: z\r\n\r\n"),
	REQUEST("name in quotes", 400, GET "Host: a\r\n\"X\": z\r\n\r\n"),
	REQUEST("Connection that is no list of tokens", 400, GET "Host: a\r\nConnection: close;now\r\n\r\n"),

	/* hosts */
	REQUEST("no host", 400, GET "X: y\r\n\r\n"),
	REQUEST("no field at all", 400, GET "\r\n"),
	REQUEST("two hosts", 400, GET "Host: a\r\nHost: b\r\n\r\n"),
	REQUEST("the same host twice", 400, GET "Host: a\r\nhost: a\r\n\r\n"),
	REQUEST("two hosts in HTTP/1.0", 400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
	REQUEST("empty host", 400, GET "Host:\r\n\r\n"),
	REQUEST("host with a path", 400, GET "Host: a/b\r\n\r\n"),
	REQUEST("host with a user", 400, GET "Host: u@a\r\n\r\n"),
	REQUEST("host list", 400, GET "Host: a, b\r\n\r\n"),
	REQUEST("host list without a space", 400, GET "Host: a,b\r\n\r\n"),
	REQUEST("host with a space", 400, GET "Host: a b\r\n\r\n"),
	REQUEST("host with a bad port", 400, GET "Host: a:b\r\n\r\n"),
	REQUEST("host with an empty port", 400, GET "Host: a:\r\n\r\n"),
	REQUEST("host with a large port", 400, GET "Host: a:65536\r\n\r\n"),
	REQUEST("host with two ports", 400, GET "Host: a:1:2\r\n\r\n"),
	REQUEST("port without host", 400, GET "Host: :80\r\n\r\n"),
	REQUEST("host with an open bracket", 400, GET "Host: [::1\r\n\r\n"),
	REQUEST("host with a name in brackets", 400, GET "Host: [localhost]\r\n\r\n"),
	REQUEST("host behind its brackets", 400, GET "Host: [::1]a\r\n\r\n"),
	REQUEST("host with a percent sign", 400, GET "Host: a%2e\r\n\r\n"),
	REQUEST("host above ASCII", 400, GET "Host: \xc3\xa4\r\n\r\n"),

	/* first lines */
	REQUEST("HTTP/0.9", 400, "GET /\r\n\r\n"),
	REQUEST("no target", 400, "GET HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("two spaces before the target", 400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("two spaces behind the target", 400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("space behind the version", 400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
	REQUEST("space before the method", 400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("tabs", 400, "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("space in the target", 400, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("method that is no token", 400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("method with a colon", 400, "GET: / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("no version", 400, "GET / \r\nHost: a\r\n\r\n"),
	REQUEST("version in lower case", 400, "GET / http/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("version without a dot", 400, "GET / HTTP/11\r\nHost: a\r\n\r\n"),
	REQUEST("version with two digits", 400, "GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
	REQUEST("version of another protocol", 400, "GET / ICY/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("version 1.2", 505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
	REQUEST("version 0.9", 505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
	REQUEST("version 2.0", 505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
	REQUEST("the preface of HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	REQUEST("a TLS handshake", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	REQUEST("two empty lines in front", 400, "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("a bare LF in front", 400, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),

	/* targets */
	REQUEST("fragment", 400, "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("fragment in a query", 400, "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("relative target", 400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("quote in the target", 400, "GET /\" HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("angle bracket in the target", 400, "GET /<x> HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("backslash in the path", 400, "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("a byte above ASCII in the path", 400, "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("a byte above ASCII in the query", 400, "GET /?\xff HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("escape without digits", 400, "GET /% HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("escape with one digit", 400, "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("escape with other letters", 400, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("asterisk for GET", 400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("authority-form for GET", 400, "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("CONNECT", 501, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	REQUEST("URL of another scheme", 400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("URL without a host", 400, "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("URL with a user", 400, "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("URL of another host", 400, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("URL of another port", 400, "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("URL and no host", 400, "GET http://a/ HTTP/1.1\r\nX: y\r\n\r\n"),
	REQUEST("URL with a fragment", 400, "GET http://a#b HTTP/1.1\r\nHost: a\r\n\r\n"),

	/* expectations */
	REQUEST("another expectation", 417, POST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx"),
	REQUEST("two expectations", 417, POST "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
	REQUEST("an empty expectation", 417, POST "Expect:\r\nContent-Length: 1\r\n\r\nx"),

	/* limits: one past each */
	REQUEST("a first line of 121 bytes", 414, "GET /" X100 "yyyyyyy HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("a first line without end", 414, "GET /" X100 X10 X10 X10),
	REQUEST("eleven fields", 431, GET "Host: a\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n10:\r\n\r\n"),
	REQUEST("a head of 601 bytes", 431, GET "Host: a\r\nX: " X100 X100 X100 X100 X100 X10 X10 X10 X10 X10 X10 "xxxxxxxxx\r\n\r\n"),
	REQUEST("a head without end", 431, GET "Host: a\r\nX: " X100 X100 X100 X100 X100 X100 X100),

	/* chunks */
	REQUEST("chunk size with 0x", 400, CHUNKED "0x5\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with a plus", 400, CHUNKED "+5\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with a minus", 400, CHUNKED "-5\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with a space before", 400, CHUNKED " 5\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with a space behind", 400, CHUNKED "5 \r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with a tab behind", 400, CHUNKED "5\t\r\nhello\r\n0\r\n\r\n"),
	REQUEST("no chunk size", 400, CHUNKED "\r\nhello\r\n0\r\n\r\n"),
	REQUEST("an extension without a size", 400, CHUNKED ";x\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size that is no number", 400, CHUNKED "g\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size with an underscore", 400, CHUNKED "1_0\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size above 2^63", 400, CHUNKED "8000000000000000\r\n"),
	REQUEST("chunk size above 2^64", 400, CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk size of 17 digits", 400, CHUNKED "00000000000000005\r\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk longer than its size", 400, CHUNKED "5\r\nhello!\r\n0\r\n\r\n"),
	REQUEST("chunk shorter than its size", 400, CHUNKED "5\r\nhell\r\n0\r\n\r\n"),
	REQUEST("chunk size behind a bare LF", 400, CHUNKED "5\nhello\r\n0\r\n\r\n"),
	REQUEST("chunk that ends with LF", 400, CHUNKED "5\r\nhello\n0\r\n\r\n"),
	REQUEST("chunk that ends with CR", 400, CHUNKED "5\r\nhello\r0\r\n\r\n"),
	REQUEST("chunk size and a bare CR", 400, CHUNKED "5\rhello\r\n0\r\n\r\n"),
	REQUEST("last chunk behind a bare LF", 400, CHUNKED "0\n\r\n"),
	REQUEST("bare LF at the end", 400, CHUNKED "0\r\n\n"),
	REQUEST("extension with a bare LF", 400, CHUNKED "5;a\nhello\r\n0\r\n\r\n"),
	REQUEST("extension with a NUL", 400, CHUNKED "5;\0\r\nhello\r\n0\r\n\r\n"),
	REQUEST("extension above ASCII", 400, CHUNKED "5;\xff\r\nhello\r\n0\r\n\r\n"),
	REQUEST("trailer without a colon", 400, CHUNKED "0\r\nnonsense\r\n\r\n"),
	REQUEST("trailer that begins with a colon", 400, CHUNKED "0\r\n: x\r\n\r\n"),
	REQUEST("trailer with a space before the colon", 400, CHUNKED "0\r\nX : y\r\n\r\n"),
	REQUEST("folded trailer", 400, CHUNKED "0\r\nX: y\r\n z\r\n\r\n"),
	REQUEST("trailer with a bare LF", 400, CHUNKED "0\r\nX: y\n\r\n"),
	REQUEST("trailer with a NUL", 400, CHUNKED "0\r\nX: \0\r\n\r\n"),

	/* what is fine */
	REQUEST("plain", 0, GET "Host: a\r\n\r\n"),
	REQUEST("an empty line in front", 0, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("HTTP/1.0 without host", 0, "GET / HTTP/1.0\r\n\r\n"),
	REQUEST("with a length", 0, POST "Content-Length: 5\r\n\r\nhello"),
	REQUEST("length 0", 0, POST "Content-Length: 0\r\n\r\n"),
	REQUEST("white space around a length", 0, POST "Content-Length: \t 5 \t\r\n\r\nhello"),
	REQUEST("no white space at all", 0, "POST / HTTP/1.1\r\nHost:a\r\nContent-Length:5\r\n\r\nhello"),
	REQUEST("two chunks", 0, CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
	REQUEST("chunked in capitals", 0, POST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
	REQUEST("sizes in hex of either case", 0, CHUNKED "A\r\n0123456789\r\n0a\r\n0123456789\r\n000\r\n\r\n"),
	REQUEST("extensions", 0, CHUNKED "5;a;b=c; d=\"e f\"\r\nhello\r\n0;last\r\n\r\n"),
	REQUEST("trailers", 0, CHUNKED "5\r\nhello\r\n0\r\nX: y\r\nEmpty:\r\n\r\n"),
	REQUEST("the largest length", -1, POST "Content-Length: 9223372036854775807\r\n\r\nx"),
	REQUEST("the largest chunk", -1, CHUNKED "7fffffffffffffff\r\nx"),
	REQUEST("bytes above ASCII in a value", 0, GET "Host: a\r\nX: \xff\x80 \xc3\xa4\r\n\r\n"),
	REQUEST("tab in a value", 0, GET "Host: a\r\nX: a\tb\r\n\r\n"),
	REQUEST("empty values", 0, GET "Host: a\r\nX:\r\nY:  \r\n\r\n"),
	REQUEST("all token characters", 0, GET "Host: a\r\n!#$%&'*+-.^_`|~09AZaz: x\r\n\r\n"),
	REQUEST("another method", 0, "BREW-it / HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("colons in a value", 0, GET "Host: a\r\nX: :a:b:\r\n\r\n"),
	REQUEST("a host with a port", 0, GET "Host: a.b-c_d~e:65535\r\n\r\n"),
	REQUEST("an IPv6 host", 0, GET "Host: [::ffff:1.2.3.4]:80\r\n\r\n"),
	REQUEST("an URL", 0, "GET http://A:80/x?y HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	REQUEST("an URL with https", 0, "GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("an asterisk", 0, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("what browsers send", 0, "GET /a[1]|^?x[]={1}|\\`%zz% HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("dots and slashes", 0, "GET //a/../.%2e/%00?? HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("expectation in other case", 0, POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
	REQUEST("expectation in HTTP/1.0", 0, "POST / HTTP/1.0\r\nExpect: what\r\nContent-Length: 1\r\n\r\nx"),
	REQUEST("an empty list in Connection", 0, GET "Host: a\r\nConnection: ,, close,\r\n\r\n"),
	REQUEST("a first line of 120 bytes", 0, "GET /" X100 "yyyyyy HTTP/1.1\r\nHost: a\r\n\r\n"),
	REQUEST("ten fields", 0, GET "Host: a\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n\r\n"),
	REQUEST("a head of 600 bytes", 0, GET "Host: a\r\nX: " X100 X100 X100 X100 X100 X10 X10 X10 X10 X10 X10 "xxxxxxxx\r\n\r\n"),
	REQUEST("nothing", -1, ""),
	REQUEST("half a head", -1, GET "Host: a\r\n"),
	REQUEST("a head but for its LF", -1, GET "Host: a\r\n\r"),
	REQUEST("half a body", -1, POST "Content-Length: 5\r\n\r\nhel"),
	REQUEST("half a chunk", -1, CHUNKED "5\r\nhel"),
	REQUEST("chunks without end", -1, CHUNKED "5\r\nhello\r\n0\r\n"),
};

static const struct shape response_shapes[] = {
	RESPONSE("length and coding", 502, OK_200 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	RESPONSE("two lengths", 502, OK_200 "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
	RESPONSE("the same length twice", 502, OK_200 "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
	RESPONSE("a list of lengths", 502, OK_200 "Content-Length: 5, 5\r\n\r\nhello"),
	RESPONSE("length with a plus", 502, OK_200 "Content-Length: +5\r\n\r\nhello"),
	RESPONSE("empty length", 502, OK_200 "Content-Length: \r\n\r\n"),
	RESPONSE("length above 2^63", 502, OK_200 "Content-Length: 9223372036854775808\r\n\r\n"),
	RESPONSE("gzip", 502, OK_200 "Transfer-Encoding: gzip\r\n\r\n"),
	RESPONSE("gzip, chunked", 502, OK_200 "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	RESPONSE("coding in HTTP/1.0", 502, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	RESPONSE("folded line", 502, OK_200 "X: a\r\n b\r\n\r\n"),
	RESPONSE("line that begins with a colon", 502, OK_200 ": a\r\n\r\n"),
	RESPONSE("space before the colon", 502, OK_200 "Content-Length : 5\r\n\r\nhello"),
	RESPONSE("bare LF", 502, "HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
	RESPONSE("bare CR", 502, OK_200 "X: a\rb\r\n\r\n"),
	RESPONSE("NUL", 502, OK_200 "X: \0\r\n\r\n"),
	RESPONSE("NUL in the reason", 502, "HTTP/1.1 200 O\0K\r\n\r\n"),
	RESPONSE("an empty line in front", 502, "\r\nHTTP/1.1 200 OK\r\n\r\n"),
	RESPONSE("HTTP/0.9", 502, "hello, world\r\n\r\n"),
	RESPONSE("version 2.0", 502, "HTTP/2.0 200 OK\r\n\r\n"),
	RESPONSE("version 1.2", 502, "HTTP/1.2 200 OK\r\n\r\n"),
	RESPONSE("version 2", 502, "HTTP/2 200 OK\r\n\r\n"),
	RESPONSE("version in lower case", 502, "http/1.1 200 OK\r\n\r\n"),
	RESPONSE("another protocol", 502, "ICY 200 OK\r\n\r\n"),
	RESPONSE("two digits", 502, "HTTP/1.1 20 OK\r\n\r\n"),
	RESPONSE("four digits", 502, "HTTP/1.1 2000 OK\r\n\r\n"),
	RESPONSE("no status", 502, "HTTP/1.1 OK\r\n\r\n"),
	RESPONSE("status 0", 502, "HTTP/1.1 000 OK\r\n\r\n"),
	RESPONSE("status 099", 502, "HTTP/1.1 099 OK\r\n\r\n"),
	RESPONSE("status 600", 502, "HTTP/1.1 600 OK\r\n\r\n"),
	RESPONSE("status -20", 502, "HTTP/1.1 -20 OK\r\n\r\n"),
	RESPONSE("no space behind the status", 502, "HTTP/1.1 200\r\n\r\n"),
	RESPONSE("two spaces before the status", 502, "HTTP/1.1  200 OK\r\n\r\n"),
	RESPONSE("tab before the status", 502, "HTTP/1.1\t200 OK\r\n\r\n"),
	RESPONSE("a switch of protocols", 502, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
	RESPONSE("204 with a body", 502, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
	RESPONSE("204 with chunks", 502, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	RESPONSE("100 with a body", 502, "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello"),
	RESPONSE("too many fields", 502, OK_200 "0:\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n10:\r\n\r\n"),
	RESPONSE("a status line without end", 502, "HTTP/1.1 200 " X100 X10 X10),
	RESPONSE("bad chunk size", 502, OK_200 "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"),
	RESPONSE("bad chunk end", 502, OK_200 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n"),
	TO_HEAD("bad length for HEAD", 502, OK_200 "Content-Length: 5, 5\r\n\r\n"),

	RESPONSE("with a length", 0, OK_200 "Content-Length: 5\r\n\r\nhello"),
	RESPONSE("with chunks", 0, OK_200 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
	RESPONSE("until it closes", 0, OK_200 "X: y\r\n\r\nhello, world"),
	RESPONSE("until it closes, with nothing", 0, OK_200 "\r\n"),
	RESPONSE("HTTP/1.0 until it closes", 0, "HTTP/1.0 200 OK\r\n\r\nhello"),
	RESPONSE("no reason", 0, "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"),
	RESPONSE("a reason above ASCII", 0, "HTTP/1.1 200 \xc3\x84\r\nContent-Length: 0\r\n\r\n"),
	RESPONSE("no content", 0, "HTTP/1.1 204 No Content\r\n\r\n"),
	RESPONSE("no content with length 0", 0, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
	RESPONSE("not modified with a length", 0, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
	RESPONSE("continue", 0, "HTTP/1.1 100 Continue\r\n\r\n"),
	RESPONSE("early hints", 0, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
	TO_HEAD("a length for HEAD", 0, OK_200 "Content-Length: 5\r\n\r\n"),
	TO_HEAD("chunks for HEAD", 0, OK_200 "Transfer-Encoding: chunked\r\n\r\n"),
	RESPONSE("two hosts, which mean nothing here", 0, OK_200 "Host: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n"),
	RESPONSE("half a body", -1, OK_200 "Content-Length: 5\r\n\r\nhell"),
	RESPONSE("half a head", -1, OK_200 "Content-Length: 5\r\n"),
};
/* clang-format on */

/* ---- every shape in every way ---- */

struct split {
	size_t first; /* bytes of the first piece, then all the rest */
	bool used;
};

static size_t next_split(void *data, size_t left)
{
	struct split *split = data;

	if (split->used || split->first >= left)
		return left;
	split->used = true;
	return split->first;
}

static void fail_shape(const struct shape *shape, const char *way, const struct outcome *outcome)
{
	fail_msg("%s (%s): verdict %d, status %d, %s", shape->name, way, outcome->verdict,
		 outcome->verdict == WIRE_BAD ? hx_code_http_status(outcome->err.code) : 0,
		 outcome->verdict == WIRE_BAD ? outcome->err.reason : "no reason");
}

static void check_shape(const struct shape *shape)
{
	struct slice bytes = slice_of(shape->bytes, shape->n);
	struct outcome whole = reader_read(shape->kind, bytes, &limits, next_whole, NULL);
	struct outcome other = reader_read(shape->kind, bytes, &limits, next_byte, NULL);
	int status = whole.verdict == WIRE_BAD    ? hx_code_http_status(whole.err.code)
		     : whole.verdict == WIRE_MORE ? -1
						  : 0;

	if (status != shape->status || (status == 0 && whole.used != shape->n))
		fail_shape(shape, "whole", &whole);
	if (!outcome_equal(&whole, &other))
		fail_shape(shape, "byte by byte", &other);
	for (size_t at = 1; at < shape->n; at++) {
		struct split split = {.first = at};

		other = reader_read(shape->kind, bytes, &limits, next_split, &split);
		if (!outcome_equal(&whole, &other))
			fail_shape(shape, "split", &other);
	}
}

static void every_request_shape(void **state)
{
	size_t n = sizeof request_shapes / sizeof *request_shapes, bad = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		check_shape(&request_shapes[i]);
		bad += request_shapes[i].status > 0;
	}
	printf("# %zu request shapes, %zu of them refused\n", n, bad);
}

static void every_response_shape(void **state)
{
	size_t n = sizeof response_shapes / sizeof *response_shapes, bad = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		check_shape(&response_shapes[i]);
		bad += response_shapes[i].status > 0;
	}
	printf("# %zu response shapes, %zu of them refused\n", n, bad);
}

/* Any control byte, at any place of a head, is the end of it. */
static void control_bytes_are_refused_everywhere(void **state)
{
	static const char head[] = "GET /a?b HTTP/1.1\r\nHost: a\r\nX-Name: some value\r\n\r\n";
	char bytes[sizeof head];

	(void)state;
	for (size_t at = 0; at < sizeof head - 1; at++) {
		if (head[at] == '\r' || head[at] == '\n')
			continue;
		for (int c = 0; c < 0x20; c++) {
			struct outcome outcome;

			if (c == '\t' || c == '\r')
				continue;
			memcpy(bytes, head, sizeof head);
			bytes[at] = (char)c;
			outcome = reader_read(READ_REQUEST, slice_of(bytes, sizeof head - 1), &limits, next_whole,
					      NULL);
			assert_int_equal(outcome.verdict, WIRE_BAD);
			assert_int_equal(outcome.err.code, HX_BAD_REQUEST);
		}
	}
}

/* ---- what is found ---- */

static struct wire_field found[20];

static enum wire_verdict parse_request(const char *text, struct wire_request *ret)
{
	struct wire_scan scan = {0};
	struct wire_error err;

	if (wire_scan_request(&scan, slice_str(text), &limits, &err) != WIRE_DONE)
		return WIRE_BAD;
	return wire_request_parse(wire_scan_head(&scan, text), found, ret, &err);
}

static enum wire_verdict parse_response(const char *text, bool to_head, struct wire_response *ret)
{
	struct wire_scan scan = {0};
	struct wire_error err;

	if (wire_scan_response(&scan, slice_str(text), &limits, &err) != WIRE_DONE)
		return WIRE_BAD;
	return wire_response_parse(wire_scan_head(&scan, text), to_head, found, ret, &err);
}

static void assert_slice(struct slice s, const char *text)
{
	if (!slice_is(s, text))
		fail_msg("\"%.*s\" is not \"%s\"", SLICE_ARGS(s), text);
}

static void a_request_is_cut_into_its_parts(void **state)
{
	struct wire_request r;

	(void)state;
	assert_int_equal(parse_request("\r\nPATCH /a/b%20c?d=e?f HTTP/1.1\r\nHost: h:1\r\nX-One:  a b \t\r\nx-one:\r\n"
				       "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n",
				       &r),
			 WIRE_DONE);
	assert_slice(r.method, "PATCH");
	assert_slice(r.target, "/a/b%20c?d=e?f");
	assert_slice(r.path, "/a/b%20c");
	assert_true(r.has_query);
	assert_slice(r.query, "d=e?f");
	assert_slice(r.host, "h:1");
	assert_int_equal(r.form, WIRE_ORIGIN);
	assert_true(r.expect_continue);
	assert_int_equal(r.head.framing, WIRE_LENGTH);
	assert_int_equal(r.head.length, 12);
	assert_true(r.head.keep_alive);
	assert_int_equal(r.head.fields.n, 5);
	assert_slice(r.head.fields.at[1].name, "X-One");
	assert_slice(r.head.fields.at[1].value, "a b");
	assert_slice(r.head.fields.at[2].value, "");
}

static void targets_have_three_forms(void **state)
{
	struct wire_request r;

	(void)state;
	assert_int_equal(parse_request("GET http://A.b:80 HTTP/1.1\r\nHost: a.B:80\r\n\r\n", &r), WIRE_DONE);
	assert_int_equal(r.form, WIRE_ABSOLUTE);
	assert_slice(r.path, "/");
	assert_slice(r.host, "a.B:80");
	assert_false(r.has_query);
	assert_int_equal(parse_request("GET http://[::1]?x HTTP/1.0\r\n\r\n", &r), WIRE_DONE);
	assert_slice(r.host, "[::1]");
	assert_slice(r.path, "/");
	assert_slice(r.query, "x");
	assert_int_equal(parse_request("GET /? HTTP/1.1\r\nHost: a\r\n\r\n", &r), WIRE_DONE);
	assert_true(r.has_query);
	assert_int_equal(r.query.n, 0);
	assert_int_equal(parse_request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &r), WIRE_DONE);
	assert_int_equal(r.form, WIRE_ASTERISK);
	assert_slice(r.path, "*");
}

static void who_goes_on_after_the_message(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", false},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
	};
	struct wire_request r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse_request(cases[i].text, &r), WIRE_DONE);
		assert_int_equal(r.head.keep_alive, cases[i].keep_alive);
	}
}

static void a_response_ends_where_its_request_and_status_say(void **state)
{
	static const struct {
		const char *text;
		bool to_head;
		enum wire_framing framing;
		bool has_length, keep_alive;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", false, WIRE_LENGTH, true, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, WIRE_NO_BODY, true, true},
		{"HTTP/1.1 200 OK\r\n\r\n", true, WIRE_NO_BODY, false, true},
		{"HTTP/1.1 200 OK\r\n\r\n", false, WIRE_UNTIL_CLOSE, false, false},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", false, WIRE_NO_BODY, true, true},
		{"HTTP/1.1 204 No Content\r\n\r\n", false, WIRE_NO_BODY, false, true},
		{"HTTP/1.1 100 Continue\r\n\r\n", false, WIRE_NO_BODY, false, true},
		{"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", false, WIRE_LENGTH, true, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", false, WIRE_CHUNKED,
		 false, false},
	};
	struct wire_response r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse_response(cases[i].text, cases[i].to_head, &r), WIRE_DONE);
		assert_int_equal(r.head.framing, cases[i].framing);
		assert_int_equal(r.head.has_length, cases[i].has_length);
		assert_int_equal(r.head.keep_alive, cases[i].keep_alive);
	}
	assert_int_equal(parse_response("HTTP/1.1 404 Not  Found \r\n\r\n", false, &r), WIRE_DONE);
	assert_int_equal(r.status, 404);
	assert_slice(r.reason, "Not  Found ");
}

static void a_closed_connection_ends_one_kind_of_body(void **state)
{
	struct wire_head head = {.framing = WIRE_UNTIL_CLOSE};
	struct wire_body body;
	struct wire_error err;

	(void)state;
	wire_body_init(&body, &head, /* is_response= */ true);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_DONE);
	head = (struct wire_head){.framing = WIRE_LENGTH, .length = 5};
	wire_body_init(&body, &head, /* is_response= */ true);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_BAD);
	assert_int_equal(err.code, HX_BAD_GATEWAY);
	head = (struct wire_head){.framing = WIRE_CHUNKED};
	wire_body_init(&body, &head, /* is_response= */ false);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_BAD);
	assert_int_equal(err.code, HX_BAD_REQUEST);
}

static void bytes_behind_a_message_are_left_alone(void **state)
{
	static const char *const messages[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n",
	};
	char bytes[300];

	(void)state;
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		int n = snprintf(bytes, sizeof bytes, "%sGET /next HTTP/1.1\r\nHost: a\r\n\r\n", messages[i]);
		struct outcome outcome = reader_read(READ_REQUEST, slice_of(bytes, (size_t)n), &limits, next_whole,
						     NULL);

		assert_int_equal(outcome.verdict, WIRE_DONE);
		assert_int_equal(outcome.used, strlen(messages[i]));
	}
}

static void fields_are_found_in_any_case(void **state)
{
	struct wire_request r;
	struct slice rest = slice_str(" a ,, b,\t"), item;
	size_t count;

	(void)state;
	assert_int_equal(parse_request("GET / HTTP/1.1\r\nHost: a\r\nX-Y: 1\r\nx-y: 2, Three\r\n\r\n", &r), WIRE_DONE);
	assert_slice(wire_find(r.head.fields, "X-y", &count)->value, "1");
	assert_int_equal(count, 2);
	assert_null(wire_find(r.head.fields, "X", &count));
	assert_int_equal(count, 0);
	assert_true(wire_has_token(r.head.fields, "x-Y", "three"));
	assert_false(wire_has_token(r.head.fields, "x-y", "four"));
	assert_true(wire_list_next(&rest, &item));
	assert_slice(item, "a");
	assert_true(wire_list_next(&rest, &item));
	assert_slice(item, "b");
	assert_false(wire_list_next(&rest, &item));
}

static void extensions_and_trailers_have_one_budget(void **state)
{
	static const char start[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 100000);
	strbuf_add_str(&sb, start);
	for (int i = 0; i < CHUNK_EXTRA_BYTES_MAX / 16; i++)
		strbuf_add_str(&sb, "1;123456789012345\r\nx\r\n");
	strbuf_add_str(&sb, "0\r\n\r\n");
	assert_int_equal(reader_read(READ_REQUEST, strbuf_slice(&sb), &limits, next_whole, NULL).verdict, WIRE_DONE);
	sb.n -= 5;
	strbuf_add_str(&sb, "0;\r\n\r\n");

	struct outcome outcome = reader_read(READ_REQUEST, strbuf_slice(&sb), &limits, next_whole, NULL);

	assert_int_equal(outcome.verdict, WIRE_BAD);
	assert_int_equal(outcome.err.code, HX_HEAD_TOO_LARGE);
	strbuf_release(&sb);
}

static void chunks_are_written_as_they_are_read(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 1000);
	chunk_write(slice_str("hello, world, here I am"), &sb);
	chunk_write(slice_str(""), &sb);
	chunk_write_end(&sb);
	assert_string_equal(sb.p, "17\r\nhello, world, here I am\r\n0\r\n\r\n");
	strbuf_release(&sb);
}

/* The classes as the RFCs list them, written down a second time. */
static void the_table_of_characters_is_that_of_the_rfcs(void **state)
{
	const char *token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *path = "-._~!$&'()*+,;=:@/%[]|^0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *query = "?{}\\`";

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool in_path = c && strchr(path, c);

		assert_int_equal(char_is((char)c, CHAR_TOKEN), c && strchr(token, c));
		assert_int_equal(char_is((char)c, CHAR_PATH), in_path);
		assert_int_equal(char_is((char)c, CHAR_QUERY), in_path || (c && strchr(query, c)));
		assert_int_equal(char_is((char)c, CHAR_VALUE), c == '\t' || (c >= ' ' && c != 0x7f));
		assert_int_equal(char_is((char)c, CHAR_EXTENSION), c == '\t' || (c >= ' ' && c < 0x7f));
		assert_int_equal(char_is((char)c, CHAR_HEX), c && strchr("0123456789abcdefABCDEF", c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_shape),
		cmocka_unit_test(every_response_shape),
		cmocka_unit_test(control_bytes_are_refused_everywhere),
		cmocka_unit_test(a_request_is_cut_into_its_parts),
		cmocka_unit_test(targets_have_three_forms),
		cmocka_unit_test(who_goes_on_after_the_message),
		cmocka_unit_test(a_response_ends_where_its_request_and_status_say),
		cmocka_unit_test(a_closed_connection_ends_one_kind_of_body),
		cmocka_unit_test(bytes_behind_a_message_are_left_alone),
		cmocka_unit_test(fields_are_found_in_any_case),
		cmocka_unit_test(extensions_and_trailers_have_one_budget),
		cmocka_unit_test(chunks_are_written_as_they_are_read),
		cmocka_unit_test(the_table_of_characters_is_that_of_the_rfcs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
