/* hapax job list | redrive: what is to be done after a commit, over HTTP. So far that is the after-effects. */
#include <stdio.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/client.h"
#include "cli/table.h"

static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those AVAILABLE, RUNNING, RETRYING, COMPLETED or PARKED",
};

static struct slice member(struct client *client, struct json job, const char *name)
{
	return text_of_member(job, name, &client->arena);
}

/* What the job is about: the entity whose transition made it. */
static struct slice entity_of(struct client *client, struct json job)
{
	struct json payload;

	return json_find(job, slice_str("payload"), &payload) ? member(client, payload, "id") : slice_of("", 0);
}

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json items = json_trust(slice_str("[]")), job;
	struct json_iter it;
	struct table table;
	enum hx_code code;

	(void)json_find(answer, slice_str("items"), &items); /* absent: none */
	it = json_iter_of(items);
	table_init(&table, &client->arena, 7);
	TABLE_ADD(&table, slice_str("ID"), slice_str("STATUS"), slice_str("ACTION"), slice_str("WORKFLOW"),
		  slice_str("ENTITY"), slice_str("ATTEMPT"), slice_str("ERROR"));
	while (json_iter_element(&it, &job))
		TABLE_ADD(&table, member(client, job, "id"), member(client, job, "status"),
			  member(client, job, "action"), member(client, job, "workflow"), entity_of(client, job),
			  member(client, job, "attempt"), slice_str(excerpt_of(member(client, job, "error")).text));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_status);
	struct client client;
	enum hx_code code = client_init(&client, args, err);

	client_path(&client, "/api/v1/jobs");
	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	return client_run(&client, code, "GET", print_list, err);
}

static enum hx_code print_redriven(struct client *client, struct json job, struct hx_error *err)
{
	struct slice id = member(client, job, "id"), status = member(client, job, "status");

	(void)err; /* a short line cannot fail */
	printf("%s: %s\n", excerpt_of(id).text, excerpt_of(status).text);
	return HX_OK;
}

static enum hx_code redrive(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = client_init(&client, args, err);
	client_path(&client, "/api/v1/jobs");
	client_segment(&client, args->operands[0]);
	client_path(&client, "/redrive");
	return client_run(&client, code, "POST", print_redriven, err);
}

const struct command command_job_list = {
	.noun = "job",
	.verb = "list",
	.summary = "lists jobs, after-effects among them, by age",
	.options = {&option_status, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_job_redrive = {
	.noun = "job",
	.verb = "redrive",
	.operands = "ID",
	.summary = "gives a parked job another try, with the same key",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_WRONG_STATUS, "there is no parked job of this id"}},
	.run = redrive,
};
