/* See question.h. */
#include "cli/question.h"

#include <errno.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_string.h"

#define FILE_BYTES_MAX (16u << 20)
#define PIECE_BYTES 65536

const struct command_option option_version = {
	.name = "version",
	.value = "N",
	.help = "only if it still has this version [default: whatever it has]",
};

enum hx_code question_start(struct client *client, const struct command_args *args, const char *path, size_t segments_n,
			    struct hx_error *err)
{
	enum hx_code code = client_init(client, args, err);

	client_path(client, path);
	for (size_t i = 0; i < segments_n; i++)
		client_segment(client, args->operands[i]);
	return code;
}

/* ---- the body ---- */

void question_member(struct client *client, const char *name)
{
	strbuf_addf(&client->body, "%s\"%s\":", client->body.n ? "," : "{", name);
}

void question_text(struct client *client, const char *name, const char *text)
{
	question_member(client, name);
	json_quote(slice_str(text), &client->body);
}

enum hx_code question_outcome(struct client *client, const char *text, struct hx_error *err)
{
	if (strcmp(text, "done") != 0 && strcmp(text, "not_done") != 0)
		return error_set(err, HX_VALIDATION_ERROR, "the outcome is done or not_done, not %s",
				 excerpt_of(slice_str(text)).text);
	question_text(client, "outcome", text);
	return HX_OK;
}

void question_end(struct client *client)
{
	strbuf_add_str(&client->body, client->body.n ? "}" : "{}");
}

/* ---- JSON out of an option ---- */

static enum hx_code read_all(FILE *file, const char *name, struct strbuf *out, struct hx_error *err)
{
	static char piece[PIECE_BYTES];
	size_t n;

	while (!out->failed && (n = fread(piece, 1, sizeof piece, file)) > 0)
		strbuf_add(out, piece, n);
	if (out->failed)
		return strbuf_error(out, err);
	if (ferror(file))
		return error_set(err, HX_VALIDATION_ERROR, "%s cannot be read: %s", name, strerror(errno));
	return HX_OK;
}

enum hx_code question_read_file(const char *path, struct strbuf *out, struct hx_error *err)
{
	struct excerpt name = excerpt_of(slice_str(path));
	enum hx_code code;
	FILE *file;

	if (strcmp(path, "-") == 0)
		return read_all(stdin, "standard input", out, err);
	file = fopen(path, "re");
	if (!file)
		return error_set(err, HX_VALIDATION_ERROR, "%s cannot be read: %s", name.text, strerror(errno));
	code = read_all(file, name.text, out, err);
	fclose(file);
	return code;
}

/* No JSON is a lone dash, or begins with @. */
static enum hx_code fetch(const char *value, struct strbuf *out, struct hx_error *err)
{
	if (strcmp(value, "-") == 0 || value[0] == '@')
		return question_read_file(value + (value[0] == '@'), out, err);
	strbuf_add_str(out, value);
	return out->failed ? strbuf_error(out, err) : HX_OK;
}

enum hx_code question_json(struct client *client, const struct command_args *args, const struct command_option *option,
			   struct hx_error *err)
{
	const char *given = command_value(args, option);
	struct strbuf text;
	struct json value;
	enum hx_code code;

	if (!given)
		return HX_OK;
	strbuf_init(&text, FILE_BYTES_MAX);
	code = fetch(given, &text, err);
	if (!code && json_check(strbuf_slice(&text), err, &value))
		code = error_set(err, HX_VALIDATION_ERROR, "--%s is not JSON: %s", option->name, err->detail);
	if (!code) {
		question_member(client, option->name);
		strbuf_add_slice(&client->body, value.raw);
	}
	strbuf_release(&text);
	return code;
}

enum hx_code question_version(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *text = command_value(args, &option_version);

	if (!text)
		return HX_OK;
	if (text[strspn(text, "0123456789")] || text[0] == '0')
		return error_set(err, HX_VALIDATION_ERROR, "--version is a whole number from 1 on, not %s",
				 excerpt_of(slice_str(text)).text);
	question_member(client, option_version.name);
	strbuf_add_str(&client->body, text);
	return HX_OK;
}
