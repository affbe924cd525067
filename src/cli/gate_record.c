/*
 * hapax gate show | forget: the records of a key, over the admin address of a running gate, for people.
 *
 * A key can have several records: the same one on two endpoints, or of two tenants. To forget one of those it has to be
 * named, as `show` prints it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_walk.h"
#include "cli/client.h"
#include "cli/table.h"
#include "gate/policy.h"
#include "http/address.h"

#define RECORD_BYTES 200
#define RECORD_SHOWN_BYTES 16 /* as in the log; enough to tell one from another */

static const struct command_option option_admin = {
	.name = "admin",
	.value = "ADDR:PORT",
	.env = "HAPAX_GATE_ADMIN",
	.fallback = "127.0.0.1:7413",
	.help = "the admin address of the gate; its key, if it wants one, is taken from HAPAX_GATE_ADMIN_KEY",
};
static const struct command_option option_record = {
	.name = "record",
	.value = "ID",
	.help = "which one, its id or how that begins; needed if the key has several",
};

/* ---- the question ---- */

/* The client on /gate/records. */
static enum hx_code start(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *admin = command_value(args, &option_admin);
	struct address address;
	struct hx_error wrong;
	enum hx_code code = client_init_at(client, args, option_admin.name, admin, "hapax gate --admin", err);

	if (!code && address_parse(admin, &wrong, &address))
		code = error_set(err, HX_VALIDATION_ERROR, "--admin: %s", wrong.detail);
	client_path(client, "/gate/records");
	client->key_env = "HAPAX_GATE_ADMIN_KEY";
	client->api_key = getenv(client->key_env);
	if (client->api_key && !gate_admin_key_is_good(slice_str(client->api_key)))
		client->api_key = NULL; /* empty, or nothing that a gate can have */
	return code;
}

/* ---- the answer in words ---- */

static struct slice member(struct client *client, struct json record, const char *name)
{
	return text_of_member(record, name, &client->arena);
}

static struct slice short_id(struct client *client, struct json record)
{
	struct slice id = member(client, record, "record");

	return slice_of(id.p, id.n < RECORD_SHOWN_BYTES ? id.n : RECORD_SHOWN_BYTES);
}

/* "12s", or nothing where there is no lease. */
static struct slice lease_words(struct client *client, struct json record)
{
	char text[DURATION_TEXT_BYTES];
	struct json left;
	int64_t ms = 0;

	if (!json_find(record, slice_str("leaseLeftMs"), &left) || json_type(left) != JSON_NUMBER ||
	    json_int64(left, /* err= */ NULL, &ms) || ms <= 0)
		return slice_of("", 0);
	duration_format(ms < 1000 ? ms : ms / 1000 * 1000, text);
	return arena_copy(&client->arena, slice_str(text));
}

static size_t count(struct json items)
{
	struct json_iter it = json_iter_of(items);
	struct json record;
	size_t n = 0;

	while (json_iter_element(&it, &record))
		n++;
	return n;
}

static enum hx_code print_records(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json record;

	table_init(&table, &client->arena, 6);
	TABLE_ADD(&table, slice_str("RECORD"), slice_str("ENDPOINT"), slice_str("STATUS"), slice_str("CREATED"),
		  slice_str("LEASE LEFT"), slice_str("BYTES"));
	while (json_iter_element(&it, &record))
		TABLE_ADD(&table, short_id(client, record), member(client, record, "endpoint"),
			  member(client, record, "status"), member(client, record, "createdAt"),
			  lease_words(client, record), member(client, record, "responseBytes"));
	return table_print(&table, stdout, err);
}

static enum hx_code no_record(const struct command_args *args, struct hx_error *err)
{
	return error_set(err, HX_NOT_FOUND, "the gate has no such record of the key %s",
			 excerpt_of(slice_str(args->operands[0])).text);
}

/* The records of the key that was named. The client is to be released in any case. */
static enum hx_code look_up(struct client *client, const struct command_args *args, struct hx_error *err,
			    struct json *ret_answer)
{
	enum hx_code code = start(client, args, err);

	client_query(client, "key", args->operands[0]);
	return code ? code : client_ask(client, "GET", ret_answer, err);
}

/* ---- the verbs ---- */

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	struct json answer = {0};
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = look_up(&client, args, err, &answer);
	if (!code && count(text_items(answer)) == 0)
		code = no_record(args, err);
	else if (!code && client.json)
		printf("%.*s\n", SLICE_ARGS(answer.raw));
	else if (!code)
		code = print_records(&client, answer, err);
	client_release(&client);
	return code;
}

/* Does the id begin like that? */
static bool is_meant(struct slice id, const char *wanted)
{
	return !wanted || (id.n >= strlen(wanted) && memcmp(id.p, wanted, strlen(wanted)) == 0);
}

/* The one that is meant, by its id: the named one, or the only one. Several: they are listed. */
static enum hx_code pick(struct client *client, const struct command_args *args, struct json answer,
			 char ret_record[RECORD_BYTES], struct hx_error *err)
{
	const char *wanted = command_value(args, &option_record);
	struct json_iter it = json_iter_of(text_items(answer));
	struct json record;
	enum hx_code code;
	size_t n = 0;

	while (json_iter_element(&it, &record)) {
		struct slice id = member(client, record, "record");

		if (!is_meant(id, wanted))
			continue;
		snprintf(ret_record, RECORD_BYTES, "%.*s", SLICE_ARGS(id));
		n++;
	}
	if (n == 1)
		return HX_OK;
	if (n == 0)
		return no_record(args, err);
	code = client->json ? HX_OK : print_records(client, answer, err);
	return code ? code
		    : error_set(err, HX_VALIDATION_ERROR, "%zu records have this key: say which one with --record", n);
}

static enum hx_code print_forgotten(struct client *client, struct json answer, struct hx_error *err)
{
	(void)client, (void)answer, (void)err; /* that it came is what it says */
	printf("forgotten: the next request with this key is executed\n");
	return HX_OK;
}

static enum hx_code forget(const struct command_args *args, struct hx_error *err)
{
	char record[RECORD_BYTES] = "";
	struct client client;
	struct json answer = {0};
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = look_up(&client, args, err, &answer);
	if (!code)
		code = pick(&client, args, answer, record, err);
	client_release(&client);
	if (code)
		return code;
	code = start(&client, args, err);
	client_segment(&client, record);
	return client_run(&client, code, "DELETE", print_forgotten, err);
}

const struct command command_gate_show = {
	.noun = "gate",
	.verb = "show",
	.operands = "KEY",
	.summary = "shows the records of an idempotency key",
	.options = {&option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS},
	.run = show,
};

const struct command command_gate_forget = {
	.noun = "gate",
	.verb = "forget",
	.operands = "KEY",
	.summary = "forgets a record, so that the next request with its key is executed",
	.options = {&option_record, &option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS, {HX_IN_FLIGHT, "its request may still be at work, or the key has just been used"}},
	.run = forget,
};
