/* hapax run start | show: with --wait they ask until it has ended. What else is said of runs stands in the table, verbs_flow.c. */
#include "cli/run_parts.h"

#include "base/json_walk.h"
#include "cli/question.h"
#include "cli/view.h"
#include "model/text.h"

/* The answer to a start, with the run as it has become. */
static enum hx_code start_over(struct client *client, struct json answer, struct json run, struct json *ret_answer,
			       struct hx_error *err)
{
	bool differs = text_member_is_true(answer, "inputDiffers");
	const char *text = text_printf(&client->arena, "{\"run\":%.*s,\"created\":%s%s}", SLICE_ARGS(run.raw),
				       text_member_is_true(answer, "created") ? "true" : "false",
				       differs ? ",\"inputDiffers\":true" : "");

	if (!text)
		return arena_error(&client->arena, err);
	*ret_answer = json_trust(slice_str(text));
	return HX_OK;
}

enum hx_code run_ask_start(struct client *client, const struct command_args *args, struct verb_answer *ret,
			   struct hx_error *err)
{
	struct json before = {0}, run;
	int64_t wait_ms;
	enum hx_code code = wait_read(args, &wait_ms, err);

	if (!code)
		code = question_ask(client, args, &ret->json, err);
	if (code || wait_ms == 0)
		return code;
	code = wait_keep(client, ret->json, &before, err);
	if (!code && !json_find(before, slice_str("run"), &run))
		code = error_set(err, HX_BAD_GATEWAY, "%s: there is no run in the answer", client->server);
	if (!code)
		code = wait_for_started(&run_wait, client, wait_ms, &run, err);
	if (code)
		return code;
	ret->verdict = wait_verdict(&run_wait, client, run, wait_ms, &ret->why);
	return start_over(client, before, run, &ret->json, err);
}

enum hx_code run_ask_show(struct client *client, const struct command_args *args, struct verb_answer *ret,
			  struct hx_error *err)
{
	return wait_show(&run_wait, client, args, ret, err);
}
