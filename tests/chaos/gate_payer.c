/*
 * gate_payer URL FROM : pays, one key after another (n-FROM, n-FROM+1 …), until it is killed. test_gate_embed starts it
 * and kills it.
 *
 * An embedding program as hapax.h wants it: each payment is a row and a new balance, in one unit with the record of its
 * key. The number of a payment goes to standard output when hx_gate_complete() has said that it is durable.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hapax.h"

static struct hx_error error;

static void must(enum hx_code code)
{
	if (code)
		errx(1, "%s: %s", hx_code_name(code), error.detail);
}

static void pay(struct hx_gate *gate, int64_t n)
{
	struct hx_value value = {.type = HX_VALUE_INT, .number = n};
	struct hx_gate_write writes[] = {
		{"INSERT INTO payment (n) VALUES (?1)", 1, &value, 0},
		{"UPDATE account SET balance = balance + 1", 0, NULL, 1},
	};
	struct hx_gate_response response = {HX_SIZE(hx_gate_response), .status = 201, .body = "paid", .body_bytes = 4};
	struct hx_gate_entry *entry;
	char key[32];

	snprintf(key, sizeof key, "n-%lld", (long long)n);
	must(hx_gate_begin(
		gate,
		&(struct hx_gate_request){HX_SIZE(hx_gate_request), .method = "POST", .path = "/payments", .key = key},
		&entry, NULL, &error));
	if (!hx_gate_replay(entry))
		must(hx_gate_complete(entry, &response, 2, writes, &error));
	hx_gate_entry_free(entry);
}

int main(int argc, char **argv)
{
	struct hx_gate *gate;
	char line[32];

	if (argc != 3)
		errx(2, "usage: gate_payer URL FROM");
	must(hx_gate_open(&(struct hx_gate_options){HX_SIZE(hx_gate_options), .store_url = argv[1]}, &gate, &error));
	for (int64_t n = strtoll(argv[2], NULL, 10);; n++) {
		int bytes = snprintf(line, sizeof line, "%lld\n", (long long)n);

		pay(gate, n);
		if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
			return 1;
	}
}
