/*
 * The log: one event, one line, one write().
 *
 * A line is a constant sentence and fields; what varies (ids, counts, foreign text) goes into the fields:
 *
 *	log_warn(log, "the lease has lapsed", log_text("run", id), log_int("fence", fence));
 *
 * On a terminal that is for people, otherwise one JSON object:
 *
 *	2026-11-15T05:39:00.000Z warn  the lease has lapsed run=run_0… fence=7
 *	{"time":"2026-11-15T05:39:00.000Z","level":"warn","message":"the lease has lapsed","run":"run_0…","fence":7}
 *
 * Whatever a field holds, a line stays one line, printable and (in the JSON form) parseable: control characters
 * and line separators are escaped, bytes that are not UTF-8 become \xHH. It is at most LOG_LINE_BYTES_MAX long,
 * which POSIX lets a pipe take in one piece, so threads and processes may share the descriptor without a lock.
 * What does not fit is cut, and `"cut":true` (` [cut]`) at the end of the line says so.
 *
 * Library code does not log; the edge logs once, with the id of the subject.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"

#define LOG_LINE_BYTES_MAX 4096

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

enum log_form { LOG_FORM_JSON, LOG_FORM_HUMAN };

/* Thread-safe once it is set up: nothing but `lost` changes, and the level, when a configuration is read again. */
struct log {
	int fd;
	enum log_form form;
	_Atomic(enum log_level) level_min;
	struct clock *clock;
	/* NULL, or who gets each line, too, with a NUL instead of its end; in any thread. fd below 0: nobody else does. */
	void (*sink)(void *data, const char *line);
	void *sink_data;
	_Atomic uint64_t lost; /* lines that the descriptor did not take in full */
};

/* For a descriptor that stays the caller's, by default STDERR_FILENO. The form is that of a terminal if it is one. */
void log_init(struct log *log, int fd, enum log_level level_min, struct clock *clock);

/* "debug", "info", "warn", "error". */
const char *log_level_name(enum log_level level);

/* A key is a name from our own source, in snake_case, and not `time`, `level`, `message` or `cut`. NULL ends a list. */
struct log_field {
	const char *key;
	bool is_int;
	int64_t number;
	struct slice text;
};

static inline struct log_field log_slice(const char *key, struct slice text)
{
	return (struct log_field){.key = key, .text = text};
}

static inline struct log_field log_text(const char *key, const char *text)
{
	return log_slice(key, slice_str(text));
}

static inline struct log_field log_int(const char *key, int64_t number)
{
	return (struct log_field){.key = key, .is_int = true, .number = number};
}

/* Writes one line if the level is at least level_min. A NULL log is silent. Keeps errno. */
void log_write(struct log *log, enum log_level level, const char *message, const struct log_field *fields);

#ifdef __cppcheck__ /* which does not read __VA_OPT__ yet */
#define LOG_FIELDS(...) ((const struct log_field[]){{.key = NULL}, ##__VA_ARGS__})
#else
#define LOG_FIELDS(...) ((const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#endif

#define log_debug(log, message, ...) log_write(log, LOG_LEVEL_DEBUG, message, LOG_FIELDS(__VA_ARGS__))
#define log_info(log, message, ...) log_write(log, LOG_LEVEL_INFO, message, LOG_FIELDS(__VA_ARGS__))
#define log_warn(log, message, ...) log_write(log, LOG_LEVEL_WARN, message, LOG_FIELDS(__VA_ARGS__))
#define log_error(log, message, ...) log_write(log, LOG_LEVEL_ERROR, message, LOG_FIELDS(__VA_ARGS__))
