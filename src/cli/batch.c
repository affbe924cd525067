/*
 * hapax batch start | add | show | cancel: those verbs of batches that do more than ask once. What else is said of batches stands in
 * the table, verbs_flow.c. `start` without a key begins a batch with every call; whoever may have to call again gives one.
 */
#include <string.h>

#include "base/excerpt.h"
#include "base/id.h"
#include "base/json_walk.h"
#include "cli/batch_parts.h"
#include "cli/question.h"
#include "model/text.h"
#include "wire/charset.h"

/* The object with one more member, whose value is JSON. */
static enum hx_code with_member(struct client *client, struct json *object, const char *name, struct slice value,
				struct hx_error *err)
{
	const char *text = text_printf(&client->arena, "%.*s,\"%s\":%.*s}", (int)object->raw.n - 1, object->raw.p, name,
				       SLICE_ARGS(value));

	if (!text)
		return arena_error(&client->arena, err);
	*object = json_trust(slice_str(text));
	return HX_OK;
}

/* ---- start, add ---- */

/* The answer to the last of several questions does not say whether the batch is new: it is said after its members. */
static enum hx_code start_new(struct client *client, const struct command_args *args, int64_t wait_ms,
			      struct json *ret_batch, struct hx_error *err)
{
	struct batch_order order = {
		.workflow = args->operands[0],
		.account = command_value(args, "account"),
		.key = command_value(args, "key"),
		.data = command_value(args, "data"),
		.hold = command_value(args, "hold"),
	};
	struct batch_items items;
	struct json said;
	bool created = false;
	enum hx_code code = batch_items_read(&items, command_value(args, "items"), err);

	if (!code)
		code = batch_send(client, &order, &items, ret_batch, &created, err);
	batch_items_release(&items);
	if (!code)
		code = wait_for_started(&batch_wait, client, wait_ms, ret_batch, err);
	if (code || json_find(*ret_batch, slice_str("created"), &said))
		return code;
	return with_member(client, ret_batch, "created", slice_str(created ? "true" : "false"), err);
}

static enum hx_code start_held(struct client *client, const struct command_args *args, int64_t wait_ms,
			       struct json *ret_batch, struct hx_error *err)
{
	enum hx_code code;

	client_next(client, BATCH_PATH);
	client_segment(client, args->operands[0]);
	client_path(client, "/start");
	question_end(client);
	code = client_ask(client, "POST", ret_batch, err);
	return code ? code : wait_for_started(&batch_wait, client, wait_ms, ret_batch, err);
}

/* A new batch has an account and items; a held one has an id. */
static enum hx_code check_start(const struct command_args *args, bool *ret_held, struct hx_error *err)
{
	bool account = command_value(args, "account"), items = command_value(args, "items");
	int64_t id;

	*ret_held = !account && !items && id_parse("batch", slice_str(args->operands[0]), &id);
	if (*ret_held && (command_value(args, "key") || command_value(args, "data") || command_value(args, "hold")))
		return error_set(err, HX_VALIDATION_ERROR,
				 "--key, --data and --hold are for a new batch, not for one that is there");
	if (!*ret_held && (!account || !items))
		return error_set(
			err, HX_VALIDATION_ERROR,
			"batch start wants --account and --items beside a workflow, or the id of a held batch");
	if (command_value(args, "hold") && command_value(args, "wait"))
		return error_set(err, HX_VALIDATION_ERROR, "--hold and --wait: a batch that is held does not end");
	return HX_OK;
}

enum hx_code batch_ask_start(struct client *client, const struct command_args *args, struct verb_answer *ret,
			     struct hx_error *err)
{
	int64_t wait_ms = 0;
	bool held = false;
	enum hx_code code = check_start(args, &held, err);

	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code)
		code = held ? start_held(client, args, wait_ms, &ret->json, err)
			    : start_new(client, args, wait_ms, &ret->json, err);
	if (!code && wait_ms > 0)
		ret->verdict = wait_verdict(&batch_wait, client, ret->json, wait_ms, &ret->why);
	return code;
}

enum hx_code batch_ask_add(struct client *client, const struct command_args *args, struct verb_answer *ret,
			   struct hx_error *err)
{
	const char *key = command_value(args, "key");
	struct batch_items items;
	enum hx_code code;

	/* It goes into a header field, with a number after it. */
	if (key && (!chars_are(slice_str(key), CHAR_VALUE) || strlen(key) > 200))
		return error_set(err, HX_VALIDATION_ERROR, "--key has at most 200 bytes and no control characters: %s",
				 excerpt_of(slice_str(key)).text);
	code = batch_items_read(&items, command_value(args, "items"), err);
	if (!code)
		code = batch_add(client, args->operands[0], key, &items, &ret->json, err);
	batch_items_release(&items);
	return code;
}

/* ---- show, cancel ---- */

enum hx_code batch_ask_show(struct client *client, const struct command_args *args, struct verb_answer *ret,
			    struct hx_error *err)
{
	struct json batch, items;
	enum hx_code code = wait_show(&batch_wait, client, args, ret, err);

	if (code || !command_value(args, "items"))
		return code;
	code = wait_keep(client, ret->json, &batch, err);
	if (code)
		return code;
	client_next(client, BATCH_PATH);
	client_segment(client, args->operands[0]);
	client_path(client, "/items");
	code = client_ask(client, "GET", &items, err);
	ret->json = batch;
	return code ? code : with_member(client, &ret->json, "items", text_items(items).raw, err);
}

/* What was wanted is CANCELLED. */
static enum hx_code cancel_verdict(struct client *client, struct json batch, int64_t wait_ms, struct hx_error *err)
{
	struct slice status = client_member(client, batch, "status");

	if (slice_is(status, "CANCELLED"))
		return HX_OK;
	if (!wait_has_ended(client, batch))
		return wait_verdict(&batch_wait, client, batch, wait_ms, err);
	return error_set(err, HX_ALREADY_COMPLETED, "the batch is %s", excerpt_of(status).text);
}

enum hx_code batch_ask_cancel(struct client *client, const struct command_args *args, struct verb_answer *ret,
			      struct hx_error *err)
{
	enum hx_code code = wait_show(&batch_wait, client, args, ret, err);
	int64_t wait_ms;

	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code && wait_ms > 0)
		ret->verdict = cancel_verdict(client, ret->json, wait_ms, &ret->why);
	return code;
}
