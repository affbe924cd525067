/*
 * hapax batch start | add | show | list | items | cancel | accept | resolve: batches, over HTTP.
 *
 * With --json the server's answer is printed as it came; without, it is put into words (batch_show.c). `start` without a
 * key begins a batch with every call; whoever may have to call again gives one.
 */
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/id.h"
#include "base/json_walk.h"
#include "cli/batch_parts.h"
#include "cli/hint.h"
#include "cli/question.h"
#include "cli/table.h"
#include "flow/batch.h"
#include "flow/batch_item.h"
#include "http/charset.h"

static const struct command_option option_account = {
	.name = "account",
	.value = "ACCOUNT",
	.help = "who pays for the items; needed with a WORKFLOW",
};
static const struct command_option option_items = {
	.name = "items",
	.value = "FILE",
	.help = "{\"input\": …, \"cost\": N}, one to a line or all in an array; - is standard input; needed",
};
static const struct command_option option_key = {
	.name = "key",
	.value = "KEY",
	.help = "one batch for this key, however often it is started [default: none]",
};
static const struct command_option option_add_key = {
	.name = "key",
	.value = "KEY",
	.help = "adds them once, however often this is called within a day [default: none]",
};
static const struct command_option option_hold = {
	.name = "hold",
	.help = "do not start it yet: hapax batch add adds to it, hapax batch start ID starts it",
};
static const struct command_option option_with_items = {
	.name = "items",
	.help = "below it its items, the first 50",
};
static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status [default: any]",
	.words = batch_statuses,
};
static const struct command_option option_workflow = {
	.name = "workflow",
	.value = "NAME",
	.help = "only those of this workflow [default: any]",
};
static const struct command_option option_item_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status [default: any]",
	.words = item_statuses,
};
static const struct command_option option_decision = {
	.name = "decision",
	.value = "DECISION",
	.help = "only those of which this was decided [default: whatever was]",
	.words = item_decisions,
};
static const struct command_option option_output = {
	.name = "output",
	.value = "JSON",
	.help = "with done: what the item would have given back; @FILE or - has it [default: null]",
};

static struct slice member(struct client *client, struct json object, const char *name)
{
	return text_of_member(object, name, &client->arena);
}

/* ---- start, add ---- */

/* The answer to the last of several questions does not say whether the batch is new: it is said behind its members. */
static void print_json(struct json batch, const bool *created)
{
	struct json said;

	if (!created || json_find(batch, slice_str("created"), &said))
		printf("%.*s\n", SLICE_ARGS(batch.raw));
	else
		printf("%.*s,\"created\":%s}\n", (int)batch.raw.n - 1, batch.raw.p, *created ? "true" : "false");
}

/* `created` is NULL for one that was there before. */
static enum hx_code started(struct client *client, struct json batch, const bool *created, int64_t wait_ms,
			    struct hx_error *err)
{
	struct slice id = arena_copy(&client->arena, member(client, batch, "id"));
	struct batch_wait wait;
	enum hx_code code = HX_OK;

	batch_wait_init(&wait);
	if (wait_ms > 0 && id.n > 0)
		code = wait_for_started(&wait.wait, client, id.p, wait_ms, &batch, err);
	if (code)
		return code;
	if (client->json)
		print_json(batch, created);
	else
		code = batch_print_line(client, batch, created && !*created ? ", started before with this key" : "",
					err);
	if (code || wait_ms == 0)
		return code;
	return wait_verdict(&wait.wait, client, batch, wait_ms, err);
}

static enum hx_code start_new(struct client *client, const struct command_args *args, int64_t wait_ms,
			      struct hx_error *err)
{
	struct batch_order order = {
		.workflow = args->operands[0],
		.account = command_value(args, &option_account),
		.key = command_value(args, &option_key),
		.hold = command_value(args, &option_hold),
	};
	struct batch_items items;
	struct json batch;
	bool created = false;
	enum hx_code code = batch_items_read(&items, command_value(args, &option_items), err);

	if (!code)
		code = batch_send(client, &order, &items, &batch, &created, err);
	batch_items_release(&items);
	return code ? code : started(client, batch, &created, wait_ms, err);
}

static enum hx_code start_held(struct client *client, const struct command_args *args, int64_t wait_ms,
			       struct hx_error *err)
{
	struct json batch;
	enum hx_code code;

	client_segment(client, args->operands[0]);
	client_path(client, "/start");
	question_end(client);
	code = client_ask(client, "POST", &batch, err);
	return code ? code : started(client, batch, /* created= */ NULL, wait_ms, err);
}

/* A new batch has an account and items; a held one has an id. */
static enum hx_code check_start(const struct command_args *args, bool *ret_held, struct hx_error *err)
{
	bool account = command_value(args, &option_account), items = command_value(args, &option_items);
	int64_t id;

	*ret_held = !account && !items && id_parse("batch", slice_str(args->operands[0]), &id);
	if (*ret_held && (command_value(args, &option_key) || command_value(args, &option_hold)))
		return error_set(err, HX_VALIDATION_ERROR,
				 "--key and --hold are for a new batch, not for one that is there");
	if (!*ret_held && (!account || !items))
		return error_set(
			err, HX_VALIDATION_ERROR,
			"batch start wants --account and --items beside a workflow, or the id of a held batch");
	if (command_value(args, &option_hold) && command_value(args, &option_wait))
		return error_set(err, HX_VALIDATION_ERROR, "--hold and --wait: a batch that is held does not end");
	return HX_OK;
}

static enum hx_code start(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	int64_t wait_ms = 0;
	bool held = false;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (!code)
		code = check_start(args, &held, err);
	if (code)
		return code;
	code = question_start(&client, args, BATCH_PATH, 0, err);
	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code)
		code = held ? start_held(&client, args, wait_ms, err) : start_new(&client, args, wait_ms, err);
	client_release(&client);
	return code;
}

/* It goes into a header field, with a number behind it. */
static enum hx_code check_add_key(const char *key, struct hx_error *err)
{
	if (!key || (chars_are(slice_str(key), CHAR_VALUE) && strlen(key) <= 200))
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR, "--key has at most 200 bytes and no control characters: %s",
			 excerpt_of(slice_str(key)).text);
}

static enum hx_code add_items(struct client *client, const struct command_args *args, const char *path,
			      struct hx_error *err)
{
	struct batch_items items;
	struct json batch;
	enum hx_code code = batch_items_read(&items, path, err);

	if (!code)
		code = batch_add(client, args->operands[0], command_value(args, &option_add_key), &items, &batch, err);
	if (!code && client->json)
		printf("%.*s\n", SLICE_ARGS(batch.raw));
	else if (!code)
		code = batch_print_line(client, batch, "", err);
	batch_items_release(&items);
	return code;
}

static enum hx_code add(const struct command_args *args, struct hx_error *err)
{
	const char *path = command_value(args, &option_items);
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (!code && !path)
		code = error_set(err, HX_VALIDATION_ERROR, "batch add wants --items FILE");
	if (!code)
		code = check_add_key(command_value(args, &option_add_key), err);
	if (code)
		return code;
	code = question_start(&client, args, BATCH_PATH, 0, err);
	if (!code)
		code = add_items(&client, args, path, err);
	client_release(&client);
	return code;
}

/* ---- show, list, items ---- */

static enum hx_code ask_items(struct client *client, const char *id, struct json *ret_answer, struct hx_error *err)
{
	client_next(client, BATCH_PATH);
	client_segment(client, id);
	client_path(client, "/items");
	return client_ask(client, "GET", ret_answer, err);
}

/* One object: with items, they are a member of the batch. */
static enum hx_code show_json(struct client *client, struct json batch, const char *items_of, struct hx_error *err)
{
	struct slice raw = items_of ? arena_copy(&client->arena, batch.raw) : batch.raw;
	struct json answer;
	enum hx_code code;

	if (!items_of) {
		printf("%.*s\n", SLICE_ARGS(raw));
		return HX_OK;
	}
	if (!raw.p)
		return arena_error(&client->arena, err);
	code = ask_items(client, items_of, &answer, err);
	if (!code)
		printf("%.*s,\"items\":%.*s}\n", (int)raw.n - 1, raw.p, SLICE_ARGS(text_items(answer).raw));
	return code;
}

static enum hx_code show_words(struct client *client, struct json batch, const char *items_of, struct hx_error *err)
{
	struct json answer;
	enum hx_code code = batch_print_picture(client, batch, err);

	if (code || !items_of)
		return code;
	code = ask_items(client, items_of, &answer, err);
	if (code)
		return code;
	printf("\n");
	return batch_print_items(client, answer, err);
}

/* Both ask again, and the answer is gone then: how it ended is therefore found out first. `items_of`: its id, or NULL. */
static enum hx_code shown(struct client *client, const struct wait *wait, struct json batch, const char *items_of,
			  int64_t wait_ms, struct hx_error *err)
{
	struct hx_error ended = {0};
	enum hx_code verdict = wait_ms > 0 ? wait_verdict(wait, client, batch, wait_ms, &ended) : HX_OK;
	enum hx_code code = client->json ? show_json(client, batch, items_of, err)
					 : show_words(client, batch, items_of, err);

	if (!code && verdict)
		*err = ended;
	return code ? code : verdict;
}

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct batch_wait wait;
	struct client client;
	struct json batch = {0};
	int64_t wait_ms = 0;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	batch_wait_init(&wait);
	code = question_start(&client, args, BATCH_PATH, 1, err);
	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code)
		code = wait_ms > 0 ? wait_for_end(&wait.wait, &client, args->operands[0], wait_ms, &batch, err)
				   : client_ask(&client, "GET", &batch, err);
	if (!code)
		code = shown(&client, &wait.wait, batch,
			     command_value(args, &option_with_items) ? args->operands[0] : NULL, wait_ms, err);
	client_release(&client);
	return code;
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_status), *workflow = command_value(args, &option_workflow);
	struct client client;
	enum hx_code code = question_start(&client, args, BATCH_PATH, 0, err);

	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	if (workflow)
		client_query(&client, "workflow", workflow);
	return hint_run(&client, code, workflow, "batch", batch_print_list, err);
}

static enum hx_code list_items(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_item_status);
	const char *decision = command_value(args, &option_decision);
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, BATCH_PATH, 1, err);
	client_path(&client, "/items");
	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	if (decision)
		client_query(&client, "decision", decision);
	return client_run(&client, code, "GET", batch_print_items, err);
}

/* ---- cancel ---- */

/* Of a batch that runs it is only noted: whoever works on it sees that at the next item. */
static enum hx_code print_cancel(struct client *client, struct json answer, const char *id, struct hx_error *err)
{
	if (client->json)
		printf("%.*s\n", SLICE_ARGS(answer.raw));
	else if (slice_is(member(client, answer, "status"), "ACCEPTED"))
		printf("%s: accepted, and torn down at the next item; hapax batch cancel %s --wait waits for it\n", id,
		       id);
	else if (slice_is(member(client, answer, "status"), "CANCELLED"))
		printf("%s: torn down, %lld of %lld items cancelled, %lld refunded\n", id,
		       (long long)batch_number(answer, "cancelled"), (long long)batch_number(answer, "total"),
		       (long long)batch_number(answer, "refunded"));
	else
		return batch_print_line(client, answer, "", err);
	return HX_OK;
}

/* What was wanted is CANCELLED. */
static enum hx_code cancel_verdict(struct client *client, const struct wait *wait, struct json batch, int64_t wait_ms,
				   struct hx_error *err)
{
	if (slice_is(member(client, batch, "status"), "CANCELLED"))
		return HX_OK;
	if (!wait_has_ended(client, batch))
		return wait_verdict(wait, client, batch, wait_ms, err);
	return error_set(err, HX_ALREADY_COMPLETED, "the batch is %s",
			 excerpt_of(member(client, batch, "status")).text);
}

static enum hx_code cancelled(struct client *client, struct json answer, const char *id, int64_t wait_ms,
			      struct hx_error *err)
{
	struct batch_wait wait;
	enum hx_code code = HX_OK;

	batch_wait_init(&wait);
	if (wait_ms > 0 && !wait_has_ended(client, answer))
		code = wait_for_end(&wait.wait, client, id, wait_ms, &answer, err);
	if (!code)
		code = print_cancel(client, answer, id, err);
	return code || wait_ms == 0 ? code : cancel_verdict(client, &wait.wait, answer, wait_ms, err);
}

static enum hx_code cancel(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	struct json answer;
	int64_t wait_ms = 0;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, BATCH_PATH, 1, err);
	client_path(&client, "/cancel");
	question_end(&client);
	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code)
		code = client_ask(&client, "POST", &answer, err);
	if (!code)
		code = cancelled(&client, answer, args->operands[0], wait_ms, err);
	client_release(&client);
	return code;
}

/* ---- what is said of one item ---- */

/* "item 3: SUCCEEDED, accepted" */
static enum hx_code print_item(struct client *client, struct json item, struct hx_error *err)
{
	struct slice decision = member(client, item, "decision");

	(void)err; /* a short line cannot fail */
	printf("item %s: %s%s%s\n", excerpt_of(member(client, item, "n")).text,
	       excerpt_of(member(client, item, "status")).text, decision.n ? ", " : "", excerpt_of(decision).text);
	return HX_OK;
}

static enum hx_code about_item(struct client *client, const struct command_args *args, struct hx_error *err)
{
	enum hx_code code = question_start(client, args, BATCH_PATH, 1, err);

	client_path(client, "/items");
	client_segment(client, args->operands[1]);
	client_segment(client, args->command->verb);
	return code;
}

static enum hx_code accept_item(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 2, 2, err);

	if (code)
		return code;
	code = about_item(&client, args, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_item, err);
}

static enum hx_code resolve(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 3, 3, err);

	if (code)
		return code;
	code = about_item(&client, args, err);
	if (!code)
		code = question_outcome(&client, args->operands[2], err);
	if (!code)
		code = question_json(&client, args, &option_output, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_item, err);
}

/* ---- the table of verbs ---- */

/* clang-format off */
#define BATCH_STATUS_EXIT {HX_WRONG_STATUS, "the batch, or the item, is past it"}
/* clang-format on */

const struct command command_batch_start = {
	.noun = "batch",
	.verb = "start",
	.operands = "WORKFLOW | ID",
	.summary = "starts a batch of items, or finds the one of this key; or starts one that is held",
	.options = {&option_account, &option_items, &option_key, &option_hold, &option_wait, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, WAIT_EXITS, {HX_ALREADY_EXISTS, "it cannot be started any more"}},
	.run = start,
};

const struct command command_batch_add = {
	.noun = "batch",
	.verb = "add",
	.operands = "ID",
	.summary = "adds items to a batch that is held",
	.options = {&option_items, &option_add_key, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, BATCH_STATUS_EXIT},
	.run = add,
};

const struct command command_batch_show = {
	.noun = "batch",
	.verb = "show",
	.operands = "ID",
	.summary = "shows how far a batch is, and what it has cost",
	.options = {&option_with_items, &option_wait, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, WAIT_EXITS},
	.run = show,
};

const struct command command_batch_list = {
	.noun = "batch",
	.verb = "list",
	.summary = "lists batches, the newest first",
	.options = {&option_status, &option_workflow, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_batch_items = {
	.noun = "batch",
	.verb = "items",
	.operands = "ID",
	.summary = "lists the items of a batch",
	.options = {&option_item_status, &option_decision, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list_items,
};

const struct command command_batch_cancel = {
	.noun = "batch",
	.verb = "cancel",
	.operands = "ID",
	.summary = "stops a batch, deletes what its undecided items have made, and refunds what they were charged",
	.options = {&option_wait, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS,
		  {HX_ALREADY_COMPLETED, "it is completed; with --wait: it is not CANCELLED within that time"}},
	.run = cancel,
};

const struct command command_batch_accept = {
	.noun = "batch",
	.verb = "accept",
	.operands = "ID N",
	.summary = "accepts what an item has made: a cancel leaves it alone",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, BATCH_STATUS_EXIT},
	.run = accept_item,
};

const struct command command_batch_resolve = {
	.noun = "batch",
	.verb = "resolve",
	.operands = "ID N done|not_done",
	.summary = "says what became of an item whose outcome is unknown",
	.options = {&option_output, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, BATCH_STATUS_EXIT},
	.run = resolve,
};
