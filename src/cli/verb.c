/* See verb.h. */
#include "cli/verb.h"

#include "cli/hint.h"
#include "cli/question.h"
#include "cli/view.h"

#define RESULT_BYTES_MAX (64u << 20)

static enum hx_code print(const struct command_args *args, const struct view *view, struct client *client,
			  struct arena *arena, struct json result, struct hx_error *err)
{
	if (!command_value(args, "json"))
		return view_print(view ? view : args->command->view, client, arena, result, err);
	printf("%.*s\n", SLICE_ARGS(result.raw));
	return HX_OK;
}

/* A view may ask again, and the answer is gone then: what is to be said of an empty list is found out first. */
static enum hx_code print_answer(const struct command_args *args, struct client *client,
				 const struct verb_answer *answer, struct hx_error *err)
{
	bool empty = hint_is_empty(answer->json), pages = command_has(args->command, "cursor");
	enum hx_code code = print(args, answer->view, client, &client->arena, answer->json, err);

	if (code || client->json)
		return code;
	if (pages)
		text_print_more(answer->json, &client->arena, stdout);
	if (empty)
		hint_workflow(client, args);
	return code;
}

static enum hx_code run_asking(const struct command_args *args, struct hx_error *err)
{
	struct verb_answer answer = {0};
	struct client client;
	enum hx_code code = client_init(&client, args, err);

	if (!code && args->command->ask)
		code = args->command->ask(&client, args, &answer, err);
	else if (!code)
		code = question_ask(&client, args, &answer.json, err);
	if (!code)
		code = print_answer(args, &client, &answer, err);
	client_release(&client);
	if (code || !answer.verdict)
		return code;
	*err = answer.why;
	return answer.verdict;
}

static enum hx_code run_making(const struct command_args *args, struct hx_error *err)
{
	enum hx_code code, printed = HX_OK;
	LOCAL_ARENA(arena, RESULT_BYTES_MAX);
	LOCAL_STRBUF(made, RESULT_BYTES_MAX);

	code = args->command->make(args, &made, err);
	if (made.failed)
		code = strbuf_error(&made, err);
	else if (made.n > 0)
		printed = print(args, /* view= */ NULL, /* client= */ NULL, &arena, json_trust(strbuf_slice(&made)),
				code ? NULL : err);
	return code ? code : printed;
}

enum hx_code verb_run(const struct command_args *args, struct hx_error *err)
{
	enum hx_code code = command_check(args, err);

	if (code)
		return code;
	if (args->command->run)
		return args->command->run(args, err);
	return args->command->make ? run_making(args, err) : run_asking(args, err);
}
