/*
 * What a verb asks, put together from its row in the table: the path with its operands and its query, and the members of the body.
 *
 * JSON is written on the command line, or is in a file (@FILE), or comes over standard input (-). It is checked here, so that
 * what is wrong is told with its place, and sent as it was written. Numbers and times are checked here too, for their messages.
 */
#pragma once

#include "cli/client.h"

/* All of it, on a client that was initialised. */
enum hx_code question_build(struct client *client, const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;
/* The same, and asks. */
enum hx_code question_ask(struct client *client, const struct command_args *args, struct json *ret_answer,
			  struct hx_error *err) HX_MUST_CHECK;

/* For questions that are put together by hand. Begins a member of the body; its value has to follow. */
void question_member(struct client *client, const char *name);
void question_text(struct client *client, const char *name, const char *text);
/* JSON that is written in `given`, in a file (@FILE) or comes over standard input (-); told: what it is called where it is none. */
enum hx_code question_json(struct client *client, const char *name, const char *given, const char *told,
			   struct hx_error *err) HX_MUST_CHECK;
/* After the last member. */
void question_end(struct client *client);
/* Adds a whole file; "-" is standard input. HX_VALIDATION_ERROR says why it cannot be read. */
enum hx_code question_read_file(const char *path, struct strbuf *out, struct hx_error *err) HX_MUST_CHECK;
