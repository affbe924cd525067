/*
 * hapax gate show | resolve | forget: records, over the admin address of a running gate, for people.
 *
 * A key can have several records: the same one on two endpoints, or of two tenants. To decide about one of those it has to
 * be named, as `show` prints it.
 */
#include "cli/gate_record.h"

#include <string.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/hint.h"
#include "cli/question.h"

#define RECORDS_PATH "/gate/records"

const struct view gate_records_view = {
	VIEW_LIST,
	.cells = CELLS({"RECORD", "{record:short}"}, {"GATE", "{gate}"}, {"ROUTE", "{route}"},
		       {"ENDPOINT", "{endpoint}"}, {"SCOPE", "{scope:scope}"}, {"TENANT", "{tenant}"},
		       {"STATUS", "{status}"}, {"CREATED", "{createdAt}"}, {"LEASE LEFT", "{leaseLeftMs:left}"},
		       {"BYTES", "{responseBytes}"}),
};

/* Not in a function: a view that is made there does not outlive it. */
static const struct view *const was_done = LINE(
	"resolved: it was done; requests with this key get 409 RESPONSE_NOT_STORED, "
	"and nothing is executed");
static const struct view *const was_not_done = LINE(
	"resolved: it was not done; the next request with this key is executed");

static enum hx_code no_record(const struct command_args *args, struct hx_error *err)
{
	return error_set(err, HX_NOT_FOUND, "the gate has no such record of the key %s",
			 excerpt_of(slice_str(args->operands[0])).text);
}

/* The records of the key that was named. */
static enum hx_code look_up(struct client *client, const struct command_args *args, struct json *ret_answer,
			    struct hx_error *err)
{
	client_next(client, RECORDS_PATH);
	client_query(client, "key", args->operands[0]);
	return client_ask(client, "GET", ret_answer, err);
}

enum hx_code gate_ask_show(struct client *client, const struct command_args *args, struct verb_answer *ret,
			   struct hx_error *err)
{
	enum hx_code code = look_up(client, args, &ret->json, err);

	return !code && hint_is_empty(ret->json) ? no_record(args, err) : code;
}

/* Does the id begin like that, and can it be decided about? */
static bool is_meant(struct client *client, struct json record, const char *wanted, bool open)
{
	struct slice id = client_member(client, record, "record");

	if (open && !wanted && slice_is(client_member(client, record, "status"), "completed"))
		return false;
	return !wanted || (id.n >= strlen(wanted) && memcmp(id.p, wanted, strlen(wanted)) == 0);
}

/*
 * A question of its own, after which the client stands on the record that is meant: the named one, or the only one (`open`: that
 * has not been answered). Several: they are listed.
 */
static enum hx_code gate_record_find(struct client *client, const struct command_args *args, bool open,
				     struct hx_error *err)
{
	const char *wanted = command_value(args, "record"), *found = NULL;
	struct json answer = json_trust(slice_str("{}")), record;
	enum hx_code code = look_up(client, args, &answer, err);
	struct json_iter it = json_iter_of(text_items(answer));
	size_t n = 0;

	while (!code && json_iter_element(&it, &record))
		if (is_meant(client, record, wanted, open)) {
			found = arena_copy(&client->arena, client_member(client, record, "record")).p;
			n++;
		}
	if (code)
		return code;
	if (n > 1 && !client->json)
		code = view_print(&gate_records_view, client, &client->arena, answer, err);
	if (n > 1 && !code)
		code = error_set(err, HX_VALIDATION_ERROR, "%zu records have this key: say which one with --record", n);
	if (code || !found)
		return code ? code : no_record(args, err);
	client_next(client, RECORDS_PATH);
	client_segment(client, found);
	return HX_OK;
}

enum hx_code gate_ask_forget(struct client *client, const struct command_args *args, struct verb_answer *ret,
			     struct hx_error *err)
{
	enum hx_code code = gate_record_find(client, args, /* open= */ false, err);

	return code ? code : client_ask(client, "DELETE", &ret->json, err);
}

enum hx_code gate_ask_resolve(struct client *client, const struct command_args *args, struct verb_answer *ret,
			      struct hx_error *err)
{
	bool done = command_value(args, "done");
	enum hx_code code;

	if (done == (command_value(args, "not-done") != NULL))
		return error_set(err, HX_VALIDATION_ERROR,
				 "gate resolve wants --done or --not-done: what became of it?");
	code = gate_record_find(client, args, /* open= */ true, err);
	if (code)
		return code;
	client_path(client, "/resolve");
	question_text(client, "outcome", done ? "done" : "not_done");
	question_end(client);
	ret->view = done ? was_done : was_not_done;
	return client_ask(client, "POST", &ret->json, err);
}
