/*
 * A line is put together in a buffer on the stack and written at once. TAIL_BYTES of the buffer are kept free for
 * what must still fit when the rest is full: a closing quote, the mark of the cut, the end of the line. So the
 * form is never broken by a cut: text is cut between two characters, a field that does not even get its key in is
 * left out, and after the first cut nothing more is added.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/excerpt.h"

#define TAIL_BYTES 16 /* ..."  ,"cut":true}\n or [cut]\n */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

struct line {
	size_t n;
	bool cut;
	char bytes[LOG_LINE_BYTES_MAX];
};

void log_init(struct log *log, int fd, enum log_level level_min, struct clock *clock)
{
	*log = (struct log){.fd = fd, .level_min = level_min, .clock = clock};
	log->form = isatty(fd) ? LOG_FORM_HUMAN : LOG_FORM_JSON;
}

const char *log_level_name(enum log_level level)
{
	ASSERT(level <= LOG_LEVEL_ERROR);
	return level_names[level];
}

/* All of the bytes or, at the end of the room, none. */
static bool log_put(struct line *line, const void *bytes, size_t n)
{
	/* A closing quote may have reached into the tail already, so no subtraction here. */
	if (line->cut || line->n + n > LOG_LINE_BYTES_MAX - TAIL_BYTES) {
		line->cut = true;
		return false;
	}
	memcpy(line->bytes + line->n, bytes, n);
	line->n += n;
	return true;
}

static bool put_str(struct line *line, const char *s)
{
	return log_put(line, s, strlen(s));
}

/* For what the tail was kept free for. */
static void put_tail(struct line *line, const char *s)
{
	size_t n = strlen(s);

	ASSERT(n <= LOG_LINE_BYTES_MAX - line->n);
	memcpy(line->bytes + line->n, s, n);
	line->n += n;
}

static void put_escaped(struct line *line, struct slice text, bool quoted)
{
	while (text.n > 0 && !line->cut) {
		char piece[EXCERPT_PIECE_BYTES];
		unsigned n = excerpt_take(&text, quoted, piece);

		log_put(line, piece, n);
	}
}

static void put_quoted(struct line *line, struct slice text)
{
	if (!put_str(line, "\""))
		return;
	put_escaped(line, text, /* quoted= */ true);
	put_tail(line, "\"");
}

/* Would the text, unquoted, read as something else: as nothing, as two fields, as quoted? */
static bool needs_quotes(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] <= ' ' || strchr("\"\\=\x7f", text.p[i]))
			return true;
	return text.n == 0;
}

static void put_value(struct line *line, const struct log_field *field, enum log_form form)
{
	if (field->is_int) {
		char number[24];

		snprintf(number, sizeof number, "%" PRId64, field->number);
		put_str(line, number);
	} else if (form == LOG_FORM_JSON || needs_quotes(field->text)) {
		put_quoted(line, field->text);
	} else {
		put_escaped(line, field->text, /* quoted= */ false);
	}
}

static void put_field(struct line *line, const struct log_field *field, enum log_form form)
{
	const char *before = form == LOG_FORM_JSON ? ",\"" : " ";
	const char *behind = form == LOG_FORM_JSON ? "\":" : "=";
	size_t start = line->n;

	put_str(line, before);
	put_str(line, field->key);
	put_str(line, behind);

	size_t value = line->n;

	if (!line->cut)
		put_value(line, field, form);
	if (line->n == value)
		line->n = start;
}

static void put_line(struct line *line, const struct log *log, enum log_level level, const char *message,
		     const struct log_field *fields)
{
	bool json = log->form == LOG_FORM_JSON;
	char time[WALL_TIME_TEXT_BYTES];
	char head[80];

	wall_time_format(clock_wall(log->clock), time);
	snprintf(head, sizeof head, json ? "{\"time\":\"%s\",\"level\":\"%s\",\"message\":" : "%s %-5s ", time,
		 log_level_name(level));
	put_str(line, head);
	if (json)
		put_quoted(line, slice_str(message));
	else
		put_escaped(line, slice_str(message), /* quoted= */ false);
	for (; fields->key; fields++)
		put_field(line, fields, log->form);
	if (line->cut)
		put_tail(line, json ? ",\"cut\":true" : " [cut]");
	put_tail(line, json ? "}\n" : "\n");
}

/* One write() as a rule; only what it left over, on a full disk or after a signal, takes another. */
static bool write_fully(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, p, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		p += written;
		n -= (size_t)written;
	}
	return true;
}

void log_write(struct log *log, enum log_level level, const char *message, const struct log_field *fields)
{
	struct line line; /* its bytes are only worth something up to n */
	int saved = errno;

	if (!log || level < log->level_min)
		return;
	line.n = 0;
	line.cut = false;
	put_line(&line, log, level, message, fields);
	if (log->fd >= 0 ? !write_fully(log->fd, line.bytes, line.n) : !log->sink)
		atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
	if (log->sink) {
		line.bytes[line.n - 1] = '\0'; /* the end of the line */
		log->sink(log->sink_data, line.bytes);
	}
	errno = saved;
}
