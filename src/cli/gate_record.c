/*
 * hapax gate list | show | resolve | forget: records, over the admin address of a running gate, for people.
 *
 * A key can have several records: the same one on two endpoints, or of two tenants. To decide about one of those it has to
 * be named, as `show` prints it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
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

static const struct command_option option_held = {
	.name = "held",
	.help = "only those that wait for a person to say what became of them",
};
static const struct command_option option_done = {
	.name = "done",
	.help = "it was done: retries get 409 RESPONSE_NOT_STORED, and nothing is executed",
};
static const struct command_option option_not_done = {
	.name = "not-done",
	.help = "it was not done: the next request with the key is executed",
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

/* {"endpoint":true,"header:X-Region":"eu"} as "endpoint, header:X-Region=eu"; nothing at all is "global". */
static struct slice scope_words(struct client *client, struct json record)
{
	struct json scope, name, value;
	struct json_iter it;
	struct strbuf words;
	struct slice kept;

	if (!json_find(record, slice_str("scope"), &scope) || json_type(scope) != JSON_OBJECT)
		return slice_of("", 0);
	strbuf_init(&words, 4096);
	it = json_iter_of(scope);
	while (json_iter_member(&it, &name, &value)) {
		if (json_type(value) == JSON_BOOL && !slice_is(value.raw, "true"))
			continue;
		strbuf_add_str(&words, words.n ? ", " : "");
		strbuf_add_slice(&words, json_string_view(name, &client->arena));
		if (json_type(value) == JSON_STRING)
			strbuf_addf(&words, "=%.*s", SLICE_ARGS(json_string_view(value, &client->arena)));
	}
	kept = arena_copy(&client->arena, words.n ? strbuf_slice(&words) : slice_str("global"));
	strbuf_release(&words);
	return kept;
}

/* Of one key: whose they are. */
static enum hx_code print_records(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json record;

	table_init(&table, &client->arena, 10);
	TABLE_ADD(&table, slice_str("RECORD"), slice_str("GATE"), slice_str("ROUTE"), slice_str("ENDPOINT"),
		  slice_str("SCOPE"), slice_str("TENANT"), slice_str("STATUS"), slice_str("CREATED"),
		  slice_str("LEASE LEFT"), slice_str("BYTES"));
	while (json_iter_element(&it, &record))
		TABLE_ADD(&table, short_id(client, record), member(client, record, "gate"),
			  member(client, record, "route"), member(client, record, "endpoint"),
			  scope_words(client, record), member(client, record, "tenant"),
			  member(client, record, "status"), member(client, record, "createdAt"),
			  lease_words(client, record), member(client, record, "responseBytes"));
	return table_print(&table, stdout, err);
}

/* Of many. */
static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json record;
	enum hx_code code;

	table_init(&table, &client->arena, 7);
	TABLE_ADD(&table, slice_str("KEY"), slice_str("RECORD"), slice_str("GATE"), slice_str("ENDPOINT"),
		  slice_str("TENANT"), slice_str("STATUS"), slice_str("CREATED"));
	while (json_iter_element(&it, &record))
		TABLE_ADD(&table, member(client, record, "key"), short_id(client, record),
			  member(client, record, "gate"), member(client, record, "endpoint"),
			  member(client, record, "tenant"), member(client, record, "status"),
			  member(client, record, "createdAt"));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
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

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *cursor = command_value(args, &option_cursor);
	struct client client;
	enum hx_code code = start(&client, args, err);

	client_query(&client, command_value(args, &option_held) ? "held" : "all", "true");
	if (cursor)
		client_query(&client, "cursor", cursor);
	return client_run(&client, code, "GET", print_list, err);
}

/* Does the id begin like that, and can it be decided about? */
static bool is_meant(struct client *client, struct json record, const char *wanted, bool open)
{
	struct slice id = member(client, record, "record"), status = member(client, record, "status");

	if (open && !wanted && slice_is(status, "completed"))
		return false;
	return !wanted || (id.n >= strlen(wanted) && memcmp(id.p, wanted, strlen(wanted)) == 0);
}

/* The one that is meant, by its id: the named one, or the only one (`open`: that has not been answered). Several: they are
 * listed. */
static enum hx_code pick(struct client *client, const struct command_args *args, struct json answer, bool open,
			 char ret_record[RECORD_BYTES], struct hx_error *err)
{
	const char *wanted = command_value(args, &option_record);
	struct json_iter it = json_iter_of(text_items(answer));
	struct json record;
	enum hx_code code;
	size_t n = 0;

	while (json_iter_element(&it, &record)) {
		if (!is_meant(client, record, wanted, open))
			continue;
		snprintf(ret_record, RECORD_BYTES, "%.*s", SLICE_ARGS(member(client, record, "record")));
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

/* The record that is meant, out of a question of its own. */
static enum hx_code find(const struct command_args *args, bool open, char ret_record[RECORD_BYTES],
			 struct hx_error *err)
{
	struct client client;
	struct json answer = {0};
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = look_up(&client, args, err, &answer);
	if (!code)
		code = pick(&client, args, answer, open, ret_record, err);
	client_release(&client);
	return code;
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
	enum hx_code code = find(args, /* open= */ false, record, err);

	if (code)
		return code;
	code = start(&client, args, err);
	client_segment(&client, record);
	return client_run(&client, code, "DELETE", print_forgotten, err);
}

static enum hx_code print_done(struct client *client, struct json answer, struct hx_error *err)
{
	(void)client, (void)answer, (void)err;
	printf("resolved: it was done; requests with this key get 409 RESPONSE_NOT_STORED, and nothing is executed\n");
	return HX_OK;
}

static enum hx_code print_not_done(struct client *client, struct json answer, struct hx_error *err)
{
	(void)client, (void)answer, (void)err;
	printf("resolved: it was not done; the next request with this key is executed\n");
	return HX_OK;
}

static enum hx_code resolve(const struct command_args *args, struct hx_error *err)
{
	bool done = command_value(args, &option_done) != NULL, not_done = command_value(args, &option_not_done) != NULL;
	char record[RECORD_BYTES] = "";
	struct client client;
	enum hx_code code;

	if (done == not_done)
		return error_set(err, HX_VALIDATION_ERROR,
				 "gate resolve wants --done or --not-done: what became of it?");
	code = find(args, /* open= */ true, record, err);
	if (code)
		return code;
	code = start(&client, args, err);
	client_segment(&client, record);
	client_path(&client, "/resolve");
	strbuf_add_str(&client.body, done ? "{\"outcome\":\"done\"}" : "{\"outcome\":\"not_done\"}");
	return client_run(&client, code, "POST", done ? print_done : print_not_done, err);
}

const struct command command_gate_list = {
	.noun = "gate",
	.verb = "list",
	.summary = "lists the records of a gate, or those that wait for a person",
	.options = {&option_held, &option_cursor, &option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_gate_show = {
	.noun = "gate",
	.verb = "show",
	.operands = "KEY",
	.dashed = true,
	.summary = "shows the records of an idempotency key",
	.options = {&option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS},
	.run = show,
};

const struct command command_gate_resolve = {
	.noun = "gate",
	.verb = "resolve",
	.operands = "KEY",
	.dashed = true,
	.summary = "says what became of a request whose outcome nobody knew",
	.options = {&option_done, &option_not_done, &option_record, &option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS,
		  {HX_IN_FLIGHT,
		   "its request may still be at work, it has been answered, or the key has just been used"}},
	.run = resolve,
};

const struct command command_gate_forget = {
	.noun = "gate",
	.verb = "forget",
	.operands = "KEY",
	.dashed = true,
	.summary = "forgets a record, so that the next request with its key is executed",
	.options = {&option_record, &option_admin, &option_timeout, &option_json},
	.exits = {CLIENT_EXITS, {HX_IN_FLIGHT, "its request may still be at work, or the key has just been used"}},
	.run = forget,
};
