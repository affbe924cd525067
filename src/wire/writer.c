/* See writer.h. */
#include "wire/writer.h"

#include <stdio.h>
#include <time.h>

#include "wire/charset.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{101, "Switching Protocols"},
	{102, "Processing"},
	{103, "Early Hints"},
	{200, "OK"},
	{201, "Created"},
	{202, "Accepted"},
	{204, "No Content"},
	{206, "Partial Content"},
	{301, "Moved Permanently"},
	{302, "Found"},
	{303, "See Other"},
	{304, "Not Modified"},
	{307, "Temporary Redirect"},
	{308, "Permanent Redirect"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{402, "Payment Required"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{406, "Not Acceptable"},
	{408, "Request Timeout"},
	{409, "Conflict"},
	{410, "Gone"},
	{411, "Length Required"},
	{412, "Precondition Failed"},
	{413, "Content Too Large"},
	{414, "URI Too Long"},
	{415, "Unsupported Media Type"},
	{416, "Range Not Satisfiable"},
	{417, "Expectation Failed"},
	{421, "Misdirected Request"},
	{422, "Unprocessable Content"},
	{425, "Too Early"},
	{426, "Upgrade Required"},
	{428, "Precondition Required"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{502, "Bad Gateway"},
	{503, "Service Unavailable"},
	{504, "Gateway Timeout"},
	{505, "HTTP Version Not Supported"},
};

const char *status_reason(int status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return status < 300 ? "OK" : status < 400 ? "Redirection" : status < 500 ? "Client Error" : "Server Error";
}

void head_write_status(int status, struct strbuf *sb)
{
	char digits[3] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10)};

	strbuf_add_str(sb, "HTTP/1.1 ");
	strbuf_add(sb, digits, sizeof digits);
	strbuf_add_char(sb, ' ');
	strbuf_add_str(sb, status_reason(status));
	strbuf_add_str(sb, "\r\n");
}

void head_write_request(struct slice method, struct slice target, struct strbuf *sb)
{
	strbuf_add_slice(sb, method);
	strbuf_add_char(sb, ' ');
	strbuf_add_slice(sb, target);
	strbuf_add_str(sb, " HTTP/1.1\r\n");
}

bool head_write_field(struct slice name, struct slice value, struct strbuf *sb)
{
	if (!is_token(name) || !chars_are(value, CHAR_VALUE))
		return false;
	strbuf_add_slice(sb, name);
	strbuf_add(sb, ": ", value.n > 0 ? 2 : 1);
	strbuf_add_slice(sb, value);
	strbuf_add(sb, "\r\n", 2);
	return true;
}

void head_write_text(const char *name, const char *value, struct strbuf *sb)
{
	ASSERT(head_write_field(slice_str(name), slice_str(value), sb));
}

void head_write_number(const char *name, uint64_t value, struct strbuf *sb)
{
	char digits[20], *p = digits + sizeof digits;

	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	strbuf_add_str(sb, name);
	strbuf_add_str(sb, ": ");
	strbuf_add(sb, p, (size_t)(digits + sizeof digits - p));
	strbuf_add_str(sb, "\r\n");
}

/* Formatting a date costs more than the rest of a small head; a second has thousands of answers. */
static _Thread_local struct {
	int64_t second;
	char line[64];
	int n;
} last_date;

void head_write_date(struct wall_time now, struct strbuf *sb)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t second = now.ms / 1000;

	if (last_date.n == 0 || last_date.second != second) {
		time_t t = (time_t)second;
		struct tm tm;

		gmtime_r(&t, &tm);
		last_date.n = snprintf(last_date.line, sizeof last_date.line,
				       "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", days + 3 * tm.tm_wday,
				       tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
				       tm.tm_sec);
		last_date.second = second;
	}
	strbuf_add(sb, last_date.line, (size_t)last_date.n);
}

void head_write_end(struct strbuf *sb)
{
	strbuf_add(sb, "\r\n", 2);
}
