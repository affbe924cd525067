/*
 * hapax evidence: the evidence of a subject, on standard output or in a file, byte by byte as the server wrote it: its seals are
 * over bytes (flow/evidence.h). hapax audit --bundle reads it again.
 */
#include "cli/evidence.h"

#include <stdio.h>
#include <string.h>

#include "base/json_walk.h"
#include "base/json_write.h"
#include "cli/out_file.h"
#include "cli/question.h"
#include "cli/view.h"
#include "flow/evidence.h"

#define SUMMARY_BYTES_MAX 8192

static const struct view *const written = LINE("{file}: {bytes} bytes, the evidence of {subject}, head {head}");

enum hx_code evidence_print(struct client *client, struct json answer, struct hx_error *err)
{
	(void)client, (void)err;
	fwrite(answer.raw.p, 1, answer.raw.n, stdout); /* main looks whether that went well */
	putchar('\n');
	return HX_OK;
}

/* What is told of it once it is in a file. */
static enum hx_code sum_up(struct client *client, const char *path, struct json evidence, struct json *ret,
			   struct hx_error *err)
{
	LOCAL_STRBUF(text, SUMMARY_BYTES_MAX);
	struct json subject;
	struct slice kept;

	if (!json_find(evidence, slice_str("subject"), &subject))
		return error_set(err, HX_INTERNAL, "what the server answered is no evidence");
	strbuf_add_char(&text, '{');
	json_more_word(&text, "file", path);
	json_more_int(&text, "bytes", (int64_t)evidence.raw.n + 1);
	json_more_text(&text, "subject", client_member(client, subject, "name"));
	json_more_text(&text, "head", client_member(client, subject, "head"));
	strbuf_add_char(&text, '}');
	kept = text.failed ? slice_of(NULL, 0) : arena_copy(&client->arena, strbuf_slice(&text));
	if (!kept.p)
		return error_set(err, HX_NO_MEMORY, "the summary");
	*ret = json_trust(kept);
	return HX_OK;
}

static enum hx_code write_it(const char *path, struct json evidence, struct hx_error *err)
{
	LOCAL_STRBUF(text, EVIDENCE_BYTES_MAX + 1);

	strbuf_add_slice(&text, evidence.raw);
	strbuf_add_char(&text, '\n');
	return text.failed ? strbuf_error(&text, err) : out_file_write(path, strbuf_slice(&text), err);
}

enum hx_code evidence_ask(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			  struct hx_error *err)
{
	const char *path = command_value(args, "output");
	struct json evidence;
	enum hx_code code = question_ask(client, args, &evidence, err);

	ret_answer->json = evidence;
	if (code || strcmp(path, "-") == 0)
		return code;
	code = write_it(path, evidence, err);
	if (code)
		return code;
	ret_answer->view = written;
	return sum_up(client, path, evidence, &ret_answer->json, err);
}
