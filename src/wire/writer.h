/*
 * Heads, written: the answers of the server, and the requests that the gate sends upstream.
 *
 * What goes in may come from anywhere (a Location out of a database, a field of an upstream), so each name and value
 * is checked again here, and nothing can end a line early. A sick field leaves the buffer as it was.
 */
#pragma once

#include "base/clock.h"
#include "base/strbuf.h"
#include "wire/wire.h"

/* "HTTP/1.1 200 OK" and CRLF. */
void head_write_status(int status, struct strbuf *sb);
/* "POST /path HTTP/1.1" and CRLF. Method and target are those of a parsed request. */
void head_write_request(struct slice method, struct slice target, struct strbuf *sb);
/* False, and nothing is written, if the name is not a token or the value has a byte that is not allowed. */
bool head_write_field(struct slice name, struct slice value, struct strbuf *sb) HX_MUST_CHECK;
/* The same, for constant names with text or numbers of our own. */
void head_write_text(const char *name, const char *value, struct strbuf *sb);
void head_write_number(const char *name, uint64_t value, struct strbuf *sb);
/* "Date: Sun, 06 Nov 1994 08:49:37 GMT" and CRLF. */
void head_write_date(struct wall_time now, struct strbuf *sb);
/* The empty line. */
void head_write_end(struct strbuf *sb);

/* The phrase of a status, "Not Found"; that of its class for one that is not in the table. */
const char *status_reason(int status);
