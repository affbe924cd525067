/*
 * What a verb asks, put together from its operands and options: the path, and the members of the body.
 *
 *   question_start(args, "/api/v1/entities", 2) ─▶ question_json(…), question_text(…) … ─▶ question_end() ─▶ client_run()
 *
 * JSON is written on the command line, or is in a file (@FILE), or comes over standard input (-). It is checked here, so that
 * what is wrong is told with its place, and sent as it was written.
 */
#ifndef HX_CLI_QUESTION_H
#define HX_CLI_QUESTION_H

#include "cli/client.h"

extern const struct command_option option_version;

/* The client on `path`, with the first so many operands as segments behind it. Released as after client_init(). */
enum hx_code question_start(struct client *client, const struct command_args *args, const char *path, size_t segments_n,
			    struct hx_error *err) HX_MUST_CHECK;

/* Begins a member of the body; its value has to follow. */
void question_member(struct client *client, const char *name);
void question_text(struct client *client, const char *name, const char *text);
/* What became of something unknown, in a person's word: done or not_done. */
enum hx_code question_outcome(struct client *client, const char *text, struct hx_error *err) HX_MUST_CHECK;
/* Adds a whole file; "-" is standard input. HX_VALIDATION_ERROR says why it cannot be read. */
enum hx_code question_read_file(const char *path, struct strbuf *out, struct hx_error *err) HX_MUST_CHECK;
/* The next two: nothing if the option was not given. */
enum hx_code question_json(struct client *client, const struct command_args *args, const struct command_option *option,
			   struct hx_error *err) HX_MUST_CHECK;
enum hx_code question_version(struct client *client, const struct command_args *args,
			      struct hx_error *err) HX_MUST_CHECK;
/* Behind the last member. */
void question_end(struct client *client);

#endif
