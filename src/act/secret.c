/* See secret.h. */
#include "act/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/excerpt.h"

#define SECRETS_BYTES_MAX (32 * SECRET_BYTES_MAX) /* of one call */
#define REFERENCE_BYTES_MAX 4096                  /* a path */

void secrets_init(struct secrets *secrets)
{
	secrets->rules = NULL;
	strbuf_init(&secrets->values, SECRETS_BYTES_MAX);
}

void secrets_release(struct secrets *secrets)
{
	if (secrets->values.capacity)
		explicit_bzero(secrets->values.p, secrets->values.capacity);
	strbuf_release(&secrets->values);
}

/* Notes a value and appends it. A copy that is kept for masking is kept whole: it begins after the last NUL. */
static enum hx_code use(struct secrets *secrets, struct slice value, struct strbuf *out, struct hx_error *err)
{
	strbuf_add_slice(&secrets->values, value);
	strbuf_add_char(&secrets->values, '\0');
	strbuf_add_slice(out, value);
	if (secrets->values.failed)
		return strbuf_error(&secrets->values, err);
	return out->failed ? strbuf_error(out, err) : HX_OK;
}

static enum hx_code fill_env(struct secrets *secrets, const char *name, struct strbuf *out, struct hx_error *err)
{
	const char *value = getenv(name);

	if (!value)
		return error_set(err, HX_CONFIG_ERROR, "the environment variable %s is not set",
				 excerpt_of(slice_str(name)).text);
	if (strlen(value) > SECRET_BYTES_MAX)
		return error_set(err, HX_CONFIG_ERROR, "the environment variable %s is longer than %d bytes",
				 excerpt_of(slice_str(name)).text, SECRET_BYTES_MAX);
	return use(secrets, slice_str(value), out, err);
}

/* -1 with errno. A pipe or a device could block the thread that carries every call, so only files are read. */
static ssize_t read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t got = -1;
	size_t n = 0;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0) {
		errno = EINVAL;
		while (S_ISREG(st.st_mode) && n < size && (got = read(fd, buffer + n, size - n)) > 0)
			n += (size_t)got;
	}
	int saved = errno;

	(void)close(fd); /* it was only read */
	errno = saved;
	return got < 0 ? -1 : (ssize_t)n;
}

static enum hx_code fill_file(struct secrets *secrets, const char *path, struct strbuf *out, struct hx_error *err)
{
	char value[SECRET_BYTES_MAX + 3]; /* a line end, and one more to see that there is too much */
	ssize_t n = read_file(path, value, sizeof value);
	enum hx_code code;

	if (n < 0)
		return error_set(err, HX_CONFIG_ERROR, "the file %s cannot be read: %s",
				 excerpt_of(slice_str(path)).text, strerrordesc_np(errno));
	if (n > 0 && value[n - 1] == '\n')
		n -= n > 1 && value[n - 2] == '\r' ? 2 : 1;
	if (n > SECRET_BYTES_MAX)
		code = error_set(err, HX_CONFIG_ERROR, "the file %s is longer than %d bytes",
				 excerpt_of(slice_str(path)).text, SECRET_BYTES_MAX);
	else
		code = use(secrets, slice_of(value, (size_t)n), out, err);
	explicit_bzero(value, sizeof value);
	return code;
}

/* One reference: what stands between ${ and }. */
static enum hx_code secret_fill(struct secrets *secrets, struct slice reference, struct strbuf *out,
				struct hx_error *err)
{
	char text[REFERENCE_BYTES_MAX + 1];

	if (secrets->rules && secrets->rules->given &&
	    !secret_rules_allow(secrets->rules, reference)) /* mutant: secret-in-store -> 0) */
		return error_set(err, HX_CONFIG_ERROR, "${%s} is not allowed, see secrets.allow",
				 excerpt_of(reference).text);
	if (reference.n <= REFERENCE_BYTES_MAX) {
		memcpy(text, reference.p, reference.n);
		text[reference.n] = '\0';
		if (strncmp(text, "env:", 4) == 0 && text[4])
			return fill_env(secrets, text + 4, out, err);
		if (strncmp(text, "file:", 5) == 0 && text[5])
			return fill_file(secrets, text + 5, out, err);
	}
	return error_set(err, HX_CONFIG_ERROR, "${%s} is neither ${env:NAME} nor ${file:PATH}",
			 excerpt_of(reference).text);
}

enum hx_code secrets_fill(struct secrets *secrets, const char *text, struct strbuf *out, struct hx_error *err)
{
	for (;;) {
		const char *open = strstr(text, "${"), *close;
		enum hx_code code;

		strbuf_add(out, text, open ? (size_t)(open - text) : strlen(text));
		if (out->failed)
			return strbuf_error(out, err);
		if (!open)
			return HX_OK;
		close = strchr(open, '}');
		if (!close)
			return error_set(err, HX_CONFIG_ERROR, "a ${ has no }");
		code = secret_fill(secrets, slice_of(open + 2, (size_t)(close - open) - 2), out, err);
		if (code)
			return code;
		text = close + 1;
	}
}

/* ---- masking ---- */

/* The byte that a JSON escape at the front of the text stands for, and the escape's length; 0: there is none, or no ASCII. */
static size_t escape_of(struct slice text, char *ret_byte)
{
	char code[5] = {0};

	if (text.n < 2 || text.p[0] != '\\')
		return 0;
	if (memchr("\"\\/", text.p[1], 3)) {
		*ret_byte = text.p[1];
		return 2;
	}
	if (text.p[1] != 'u' || text.n < 6 || memcmp(text.p + 2, "00", 2) != 0)
		return 0;
	memcpy(code, text.p + 4, 2);
	*ret_byte = (char)strtol(code, NULL, 16);
	return 6;
}

/* How many bytes at the front of the text are this value, as the inside of a JSON string would have it; 0: they are not. */
static size_t spelled_length(struct slice text, struct slice value)
{
	size_t at = 0;

	for (size_t i = 0; i < value.n; i++) {
		char byte = at < text.n ? text.p[at] : '\0';
		size_t n = escape_of(slice_of(text.p + at, text.n - at), &byte);

		if (at >= text.n || byte != value.p[i] || (n == 0 && memchr("\"\\", byte, 2)))
			return 0;
		at += n ? n : 1;
	}
	return at;
}

static void mask_plain(struct slice value, char *text, size_t n)
{
	char *at = text, *found;

	while ((found = memmem(at, n - (size_t)(at - text), value.p, value.n))) {
		memset(found, '*', value.n);
		at = found + value.n;
	}
}

/* in_strings: only there, of a text that is JSON. */
static void mask_spelled(struct slice value, char *text, size_t n, bool in_strings)
{
	bool inside = !in_strings;

	for (size_t i = 0; i < n; i++) {
		bool may_begin = inside && (text[i] == value.p[0] || text[i] == '\\');
		size_t length = may_begin ? spelled_length(slice_of(text + i, n - i), value) : 0;

		if (length) {
			memset(text + i, '*', length);
			i += length - 1;
		} else if (in_strings && text[i] == '"') {
			inside = !inside;
		} else if (in_strings && inside && text[i] == '\\') {
			i += i + 1 < n && text[i + 1] == 'u' ? 5 : 1; /* no value begins inside of an escape */
		}
	}
}

/* Most values have no byte that anybody would escape, and are found fast. */
static bool may_be_escaped(struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (strchr("\"\\/&<>'+=", value.p[i]))
			return true;
	return false;
}

static bool next_value(const struct secrets *secrets, struct slice *value)
{
	const char *p = value->p ? value->p + value->n + 1 : secrets->values.p;

	if (!p || p >= secrets->values.p + secrets->values.n)
		return false;
	*value = slice_str(p);
	return true;
}

void secrets_mask_words(const struct secrets *secrets, char *text, size_t n)
{
	for (struct slice value = {0}; next_value(secrets, &value);) {
		if (value.n < SECRET_BYTES_MIN)
			continue;
		mask_plain(value, text, n);
		if (may_be_escaped(value))
			mask_spelled(value, text, n, /* in_strings= */ false);
	}
}

void secrets_mask_output(const struct secrets *secrets, char *json, size_t n)
{
	for (struct slice value = {0}; next_value(secrets, &value);)
		if (value.n >= SECRET_OUTPUT_BYTES_MIN && (may_be_escaped(value) || memmem(json, n, value.p, value.n)))
			mask_spelled(value, json, n, /* in_strings= */ true);
}
