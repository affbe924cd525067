/*
 * embed: an order that charges a card once, with the engine in a program of your own.
 *
 *	cc -o embed embed.c $(pkg-config --cflags --libs hapax) && ./embed order-7
 *
 * The run is started twice with one key, and one charge is made. Kill the program wherever you like and start it again
 * with the same key: the run goes on where it stood. A charge is a folder here, named after the key of the effect.
 */
#include <err.h>
#include <errno.h>
#include <hapax.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char definition[] =
	"{ \"workflow\": \"order\", \"kind\": \"run\", \"output\": \"{charged: .steps.pay.output}\","
	"  \"actions\": { \"charge\": { \"kind\": \"native\", \"function\": \"charge\", \"effect\": \"keyed\" } },"
	"  \"steps\": [ { \"name\": \"pay\", \"type\": \"task\", \"action\": \"charge\", \"input\": \".input.cents\" },"
	"             { \"name\": \"pack\", \"type\": \"wait\", \"for\": \"100ms\" } ] }";
static struct hx_error error;
/* `keyed` is a promise: asked again with the same key, it does not do it again. */
static enum hx_native_outcome charge(void *context, const struct hx_native_call *call, struct hx_output *output)
{
	char made[300];

	snprintf(made, sizeof made, "%s.%s", (const char *)context, call->key);
	for (char *p = made; (p = strchr(p, '/'));)
		*p = '.';
	if (mkdir(made, 0700) && errno != EEXIST)
		return HX_NATIVE_FAILED; /* certainly not done: the engine tries again */
	hx_output_add(output, call->input);
	return HX_NATIVE_DONE;
}

static void must(enum hx_code code)
{
	if (code)
		errx(hx_code_exit(code), "%s: %s", hx_code_name(code), error.detail);
}

int main(int argc, char **argv)
{
	struct hx_native natives[] = {{"charge", charge, "charged"}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), "sqlite:embed.db"};
	struct hx_run_request request = {HX_SIZE(hx_run_request), "order", "order-7", "{\"cents\": 1200}"};
	struct hx_result *run, *end;
	struct hx_engine *engine;

	options.natives = natives, options.natives_n = 1, request.key = argc > 1 ? argv[1] : request.key;
	must(hx_engine_open(&options, &engine, &error));
	must(hx_engine_define(engine, "order", definition, &error));
	for (int i = 0; i < 2; i++, hx_result_free(run), hx_result_free(end)) {
		must(hx_run_start(engine, NULL, &request, &run, &error));
		must(hx_run_wait(engine, NULL, run->id, 30000, &end, &error));
		printf("%s created %s: %s %s\n", run->id, run->created ? "true" : "false", end->status, end->output);
	}
	hx_engine_close(engine);
}
