/*
 * hapax account create | show | list | credit | ledger: who pays for the items of batches, over HTTP.
 *
 * With --json the server's answer is printed as it came; without, it is put into words and tables. A credit has a key: whoever got no
 * answer calls again with the same one, and the account has the money once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/question.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "flow/account.h"

#define ACCOUNT_PATH "/api/v1/accounts"
#define LINE_BYTES_MAX (1u << 20)
#define AMOUNT_DIGITS_MAX 16 /* of ACCOUNT_AMOUNT_MAX */

static const struct command_option option_balance = {
	.name = "balance",
	.value = "N",
	.fallback = "0",
	.help = "what it begins with, a whole number of the smallest unit",
};
static const struct command_option option_key = {
	.name = "key",
	.value = "KEY",
	.help = "names this credit: the same key and amount again has no effect; needed",
	.needed = true,
};

static struct slice member(struct client *client, struct json object, const char *name)
{
	return text_of_member(object, name, &client->arena);
}

/* ---- create and credit ---- */

/* Money is counted: digits alone, so that nobody has to know what 1e3 or 5.0 would have meant. */
static enum hx_code add_amount(struct client *client, const char *name, const char *text, int64_t min,
			       struct hx_error *err)
{
	size_t n = strspn(text, "0123456789");
	int64_t amount = n > 0 && n <= AMOUNT_DIGITS_MAX && !text[n] ? strtoll(text, NULL, 10) : -1;

	if (amount < min || amount > ACCOUNT_AMOUNT_MAX)
		return error_set(err, HX_VALIDATION_ERROR,
				 "the %s is a whole number of the smallest unit, from %lld to %lld, not %s", name,
				 (long long)min, (long long)ACCOUNT_AMOUNT_MAX, excerpt_of(slice_str(text)).text);
	question_member(client, name);
	strbuf_addf(&client->body, "%lld", (long long)amount);
	return HX_OK;
}

/* "alice: balance 1020" */
static enum hx_code print_line(struct client *client, struct json account, struct hx_error *err)
{
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	text_add_shown(&line, member(client, account, "id"));
	strbuf_add_str(&line, ": balance ");
	text_add_shown(&line, member(client, account, "balance"));
	if (text_member_is_true(account, "duplicate"))
		strbuf_add_str(&line, ", the credit was there already: nothing was done");
	return text_print_line(&line, err);
}

static enum hx_code create(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, ACCOUNT_PATH, 0, err);
	question_text(&client, "id", args->operands[0]);
	if (!code)
		code = add_amount(&client, "balance", command_value(args, &option_balance), /* min= */ 0, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_line, err);
}

static enum hx_code credit(const struct command_args *args, struct hx_error *err)
{
	const char *key = command_value(args, &option_key);
	struct client client;
	enum hx_code code = command_want_operands(args, 2, 2, err);

	if (!code && !key)
		code = error_set(err, HX_VALIDATION_ERROR,
				 "account credit wants --key KEY: whoever calls again with it credits nothing more");
	if (code)
		return code;
	code = question_start(&client, args, ACCOUNT_PATH, 1, err);
	client_path(&client, "/credit");
	question_text(&client, "key", key);
	if (!code)
		code = add_amount(&client, "amount", args->operands[1], /* min= */ 1, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_line, err);
}

/* ---- show, list, ledger ---- */

static enum hx_code print_whole(struct client *client, struct json account, struct hx_error *err)
{
	struct table table;

	table_init(&table, &client->arena, 2);
	TABLE_ADD(&table, slice_str("account"), member(client, account, "id"));
	TABLE_ADD(&table, slice_str("balance"), member(client, account, "balance"));
	TABLE_ADD(&table, slice_str("created"), member(client, account, "createdAt"));
	return table_print(&table, stdout, err);
}

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, ACCOUNT_PATH, 1, err);
	return client_run(&client, code, "GET", print_whole, err);
}

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct json account;
	struct table table;
	enum hx_code code;

	table_init(&table, &client->arena, 3);
	TABLE_ADD(&table, slice_str("ID"), slice_str("BALANCE"), slice_str("CREATED"));
	while (json_iter_element(&it, &account))
		TABLE_ADD(&table, member(client, account, "id"), member(client, account, "balance"),
			  member(client, account, "createdAt"));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = question_start(&client, args, ACCOUNT_PATH, 0, err);

	client_page(&client, args);
	return client_run(&client, code, "GET", print_list, err);
}

/* The key is last: it is the one that may be long. */
static enum hx_code print_ledger(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json entry;
	enum hx_code code;

	table_init(&table, &client->arena, 6);
	table.line_max = terminal_columns();
	TABLE_ADD(&table, slice_str("SEQ"), slice_str("TIME"), slice_str("REASON"), slice_str("AMOUNT"),
		  slice_str("BALANCE"), slice_str("KEY"));
	while (json_iter_element(&it, &entry))
		TABLE_ADD(&table, member(client, entry, "seq"), member(client, entry, "time"),
			  member(client, entry, "reason"), member(client, entry, "amount"),
			  member(client, entry, "balance"), member(client, entry, "key"));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

static enum hx_code ledger(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, ACCOUNT_PATH, 1, err);
	client_path(&client, "/ledger");
	client_page(&client, args);
	return client_run(&client, code, "GET", print_ledger, err);
}

/* ---- the table of verbs ---- */

const struct command command_account_create = {
	.noun = "account",
	.verb = "create",
	.operands = "ID",
	.summary = "opens an account, with what it begins with",
	.options = {&option_balance, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_ALREADY_EXISTS, "there is an account of this id"}},
	.run = create,
};

const struct command command_account_show = {
	.noun = "account",
	.verb = "show",
	.operands = "ID",
	.summary = "shows what an account has",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = show,
};

const struct command command_account_list = {
	.noun = "account",
	.verb = "list",
	.summary = "lists accounts, by id",
	.options = {CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_account_credit = {
	.noun = "account",
	.verb = "credit",
	.operands = "ID AMOUNT",
	.summary = "puts money on an account, once for each key",
	.options = {&option_key, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_ALREADY_EXISTS, "this key has credited another amount"}},
	.run = credit,
};

const struct command command_account_ledger = {
	.noun = "account",
	.verb = "ledger",
	.operands = "ID",
	.summary = "lists what made the balance of an account, the oldest first",
	.options = {CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = ledger,
};
