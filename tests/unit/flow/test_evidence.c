/* Evidence as it is read again: one that is whole, every byte of it changed, and forgeries that are consistent up to some point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "base/json_write.h"
#include "flow/batch.h"
#include "flow/evidence.h"
#include "flow/run.h"

#define SUBJECT 4711
#define ROWS 4
#define ENTRIES 4

struct money {
	int64_t amount;
	const char *key, *reason;
};

/* What is written; a test changes it first. */
static struct story {
	const char *to[ROWS];
	int64_t version[ROWS], fence[ROWS];
	const char *reason;
	int64_t status_version;
	size_t rows, rows_n; /* those there are, and those that are written */
	const char *noun, *name;
	struct money entries[ENTRIES];
	int64_t seq_first;
	int64_t charged, refunded, balance;
	bool paid;
} story;

static uint8_t hashes[ROWS][SHA256_BYTES];

static int set_up(void **state)
{
	(void)state;
	story = (struct story){
		.to = {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_COMPLETED},
		.version = {1, 2, 3, 4},
		.fence = {0, 1, 1, 1},
		.reason = "looked it up",
		.status_version = 4,
		.rows = ROWS,
		.rows_n = ROWS,
		.noun = "run",
		.name = NULL,
	};
	return 0;
}

static struct history_row row_of(size_t i)
{
	return (struct history_row){
		.subject = SUBJECT,
		.seq = (int64_t)i + 1,
		.from = slice_str(i ? story.to[i - 1] : ""),
		.to = slice_str(story.to[i]),
		.version = story.version[i],
		.fence = story.fence[i],
		.op = 900 + (int64_t)i,
		.at = 1700000000000 + (int64_t)i,
		.node = slice_str("n1"),
	};
}

/* From this row on, as an engine would have done it. */
static void link_rows(size_t first)
{
	for (size_t i = first; i < story.rows; i++) {
		struct history_row row = row_of(i);

		history_link(&row, i ? slice_of(hashes[i - 1], SHA256_BYTES) : slice_of(NULL, 0), hashes[i]);
	}
}

static void add_hash(struct strbuf *text, const char *member, const uint8_t hash[SHA256_BYTES])
{
	char hex[2 * SHA256_BYTES + 1];

	sha256_hex(hash, hex);
	json_more_word(text, member, hex);
}

static void add_subject(struct strbuf *text)
{
	size_t start, last = story.rows - 1;

	json_more(text, "subject");
	start = text->n;
	strbuf_add_char(text, '{');
	json_more_word(text, "name", story.name ? story.name : id_text("run", SUBJECT).text);
	json_more_word(text, "noun", story.noun);
	json_more_id(text, "id", "subject", SUBJECT);
	json_more_bool(text, "ownTable", false);
	json_more_word(text, "status", story.to[last]);
	json_more_int(text, "version", story.status_version);
	json_more_int(text, "fence", story.fence[last]);
	json_more_id(text, "op", "op", 900 + (int64_t)last);
	json_more_time(text, "time", 1700000000000 + (int64_t)last);
	json_more_int(text, "seq", (int64_t)last + 1);
	add_hash(text, "head", hashes[last]);
	evidence_seal(text, start);
}

static void add_row(struct strbuf *text, size_t i)
{
	struct history_row row = row_of(i);
	size_t start = text->n;

	strbuf_add_char(text, '{');
	json_more_int(text, "seq", row.seq);
	json_more_text(text, "from", row.from);
	json_more_text(text, "to", row.to);
	json_more_int(text, "version", row.version);
	json_more_int(text, "fence", row.fence);
	json_more_id(text, "op", "op", row.op);
	json_more_text(text, "node", row.node);
	json_more_time(text, "time", row.at);
	add_hash(text, "hash", hashes[i]);
	json_more_word(text, "reason", i == 2 ? story.reason : NULL);
	evidence_seal(text, start);
}

static void add_ledger(struct strbuf *text)
{
	int64_t balance = 0;

	json_more(text, "ledger");
	if (!story.paid) {
		strbuf_add_str(text, "null");
		return;
	}
	strbuf_add_char(text, '{');
	json_more_word(text, "account", "alice");
	json_more_int(text, "balance", story.balance);
	json_more_int(text, "charged", story.charged);
	json_more_int(text, "refunded", story.refunded);
	json_more(text, "entries");
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < ENTRIES && story.entries[i].key; i++) {
		const struct money *money = &story.entries[i];
		size_t start;

		strbuf_add_str(text, i ? "," : "");
		start = text->n;
		strbuf_add_char(text, '{');
		balance += money->amount;
		json_more_int(text, "seq", story.seq_first + (int64_t)i);
		json_more_int(text, "amount", money->amount);
		json_more_word(text, "key", money->key);
		json_more_word(text, "reason", money->reason);
		json_more_int(text, "balance", balance);
		json_more_time(text, "time", 1700000000000);
		evidence_seal(text, start);
	}
	strbuf_add_str(text, "]}");
}

static void write_it(struct strbuf *text)
{
	size_t start;

	strbuf_add_char(text, '{');
	json_more_word(text, "format", EVIDENCE_FORMAT);
	json_more_word(text, "program", "0.1.0");
	json_more_time(text, "at", 1700000001000);
	json_more_word(text, "workspace", "default");
	add_subject(text);
	json_more(text, "definition");
	start = text->n;
	strbuf_add_char(text, '{');
	json_more_word(text, "name", "order");
	json_more_int(text, "version", 3);
	json_more_word(text, "textSha256", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
	json_more_word(text, "text", "{}");
	evidence_seal(text, start);
	json_more(text, "history");
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < story.rows_n; i++) {
		strbuf_add_str(text, i ? "," : "");
		add_row(text, i);
	}
	strbuf_add_char(text, ']');
	add_ledger(text);
	evidence_seal(text, 0);
	strbuf_add_char(text, '\n');
}

static struct evidence found;
static struct hx_error err;

/* The code, and what is told of it in one line: "history row 3: hash", or "". */
static enum hx_code check_text(struct slice text, char ret_words[200])
{
	enum hx_code code = evidence_check(text, &found, &err);

	ret_words[0] = '\0';
	if (!code && found.finding.there)
		snprintf(ret_words, 200, "%s%s%s", found.finding.row ? found.finding.row : "",
			 found.finding.row ? ": " : "", found.finding.what);
	return code;
}

static void expect(const char *words)
{
	LOCAL_STRBUF(text, 1u << 20);
	char said[200];

	write_it(&text);
	assert_int_equal(check_text(strbuf_slice(&text), said), HX_OK);
	assert_string_equal(said, words);
}

static void test_it_is_whole(void **state)
{
	(void)state;
	link_rows(0);
	expect("");
	assert_int_equal(found.rows, ROWS);
	assert_string_equal(found.subject, id_text("run", SUBJECT).text);
	assert_int_equal(strlen(found.head), 64);
	assert_int_equal(found.at, 1700000001000);
}

/* Each byte, each time another one: found, and something is said of it. */
static void test_a_changed_byte_anywhere_is_found(void **state)
{
	LOCAL_STRBUF(text, 1u << 20);
	size_t named = 0;
	char said[200];

	(void)state;
	link_rows(0);
	write_it(&text);
	for (size_t i = 0; i < text.n; i++)
		for (int bit = 0; bit < 8; bit += 3) {
			enum hx_code code;

			text.p[i] ^= (char)(1 << bit);
			code = check_text(strbuf_slice(&text), said);
			if (code ? !err.detail[0] : !said[0])
				fail_msg("byte %zu of %zu, bit %d: nothing was found", i, text.n, bit);
			named += code == HX_OK;
			text.p[i] ^= (char)(1 << bit);
		}
	assert_true(named > text.n); /* most are still JSON, and then the place is known */
	assert_int_equal(check_text(strbuf_slice(&text), said), HX_OK);
	assert_string_equal(said, "");
}

static void test_bytes_around_it(void **state)
{
	LOCAL_STRBUF(text, 1u << 20);
	char said[200];

	(void)state;
	link_rows(0);
	write_it(&text);
	assert_int_equal(check_text(slice_of(text.p, text.n - 1), said), HX_OK);
	assert_string_equal(said, "");
	strbuf_add_char(&text, '\n');
	assert_int_equal(check_text(strbuf_slice(&text), said), HX_OK);
	assert_string_equal(said, "file");
	for (size_t n = 0; n + 2 < text.n; n++)
		assert_int_equal(check_text(slice_of(text.p, n), said), HX_VALIDATION_ERROR);
}

/* Forged and sealed again: the links tell. */
static void test_a_row_that_was_forged(void **state)
{
	(void)state;
	link_rows(0);
	story.version[2] = 5;
	expect("history row: hash");
	assert_int_equal(found.finding.seq, 3);
	link_rows(2); /* and linked again: then the next one has another version than it may have */
	expect("history row: version");
	story.version[2] = 3;
	story.fence[1] = story.fence[2] = story.fence[3] = 3;
	link_rows(0);
	expect("history row: fence");
	assert_int_equal(found.finding.seq, 2);
}

static void test_a_status_that_cannot_follow(void **state)
{
	(void)state;
	story.to[1] = RUN_COMPLETED;
	link_rows(0);
	expect("history row: status");
	story.to[1] = "MAGIC";
	link_rows(0);
	expect("history row: status");
}

static void test_a_row_that_was_left_out(void **state)
{
	(void)state;
	link_rows(0);
	story.rows_n = ROWS - 1;
	expect("history row: seq");
	assert_int_equal(found.finding.seq, ROWS);
	story.rows_n = 0;
	expect("history row: seq");
}

static void test_the_subject_is_another(void **state)
{
	(void)state;
	link_rows(0);
	story.status_version = 9;
	expect("version");
	story.status_version = 4;
	story.name = "run_0000000000001";
	expect("name");
}

static void test_the_ledger_of_an_account(void **state)
{
	(void)state;
	story = (struct story){.to = {"OPEN"},
			       .version = {1},
			       .status_version = 1,
			       .rows = 1,
			       .rows_n = 1,
			       .noun = "account",
			       .name = "account:alice"};
	link_rows(0);
	story.paid = true;
	story.seq_first = 1;
	story.entries[0] = (struct money){100, "/opening", "opening"};
	story.entries[1] = (struct money){20, "gift", "credit"};
	story.balance = 120;
	expect("");
	assert_int_equal(found.entries, 2);
	story.balance = 121;
	expect("balance");
	story.balance = 120;
	story.seq_first = 2;
	expect("ledger entry: seq");
	story.seq_first = 1;
	story.entries[1].key = "/gift";
	expect("ledger entry: key");
	story.entries[1] = (struct money){-20, "gift", "credit"};
	expect("ledger entry: amount");
	story.entries[1] = (struct money){-200, "/batch_0000000000001/0/charge/1", "charge"};
	expect("ledger entry: balance");
}

static void test_the_ledger_of_a_batch(void **state)
{
	char charge[80], back[80];

	(void)state;
	story = (struct story){
		.to = {BATCH_LOADING}, .version = {1}, .status_version = 1, .rows = 1, .rows_n = 1, .noun = "batch"};
	snprintf(charge, sizeof charge, "/%s/0/charge/1", id_text("batch", SUBJECT).text);
	snprintf(back, sizeof back, "/%s/0/refund/1", id_text("batch", SUBJECT).text);
	struct id_text name = id_text("batch", SUBJECT);

	story.name = name.text;
	link_rows(0);
	story.paid = true;
	story.seq_first = 7; /* others have been paid from the same account */
	story.entries[0] = (struct money){-30, charge, "charge"};
	story.entries[1] = (struct money){30, back, "refund"};
	story.charged = story.refunded = 30;
	expect("");
	story.charged = 31;
	expect("charged");
	story.charged = 30;
	story.refunded = 0;
	expect("refunded");
	story.refunded = 30;
	story.entries[1].key = "/batch_0000000000001/0/refund/1";
	expect("ledger entry: key");
	story.paid = false;
	LOCAL_STRBUF(text, 1u << 20);
	char said[200];

	write_it(&text);
	assert_int_equal(check_text(strbuf_slice(&text), said),
			 HX_VALIDATION_ERROR); /* one that has a ledger shows it */
}

/* ---- hostile ---- */

static void expect_refused(const char *text, const char *words)
{
	char said[200];

	assert_int_equal(check_text(slice_str(text), said), HX_VALIDATION_ERROR);
	if (!strstr(err.detail, words))
		fail_msg("%s: \"%s\" is not in \"%s\"", text, words, err.detail);
}

static void test_what_is_no_evidence(void **state)
{
	(void)state;
	expect_refused("", "1:1");
	expect_refused("null", "no evidence");
	expect_refused("[]", "no evidence");
	expect_refused("{}", "no evidence");
	expect_refused("{\"format\":\"hapax-evidence-2\"}", "hapax-evidence-1");
	expect_refused("{\"format\":\"hapax-evidence-1\"}", "workspace");
	expect_refused("{\"format\":\"hapax-evidence-1\",\"format\":1}", "format");
	expect_refused("{\"format\":\"hapax-evidence-1\",\"workspace\":\"\",\"at\":7}", "at");
	expect_refused("{\"format\":\"hapax-evidence-1\",\"workspace\":\"\",\"at\":\"2026-01-01T00:00:00Z\"}",
		       "subject");
}

/* A part, sealed, whose members are of a kind that nobody expects. */
static void test_members_of_another_kind(void **state)
{
	static const char *const subjects[] = {"{\"noun\":7", "{\"noun\":\"run\",\"ownTable\":1",
					       "{\"noun\":\"god\",\"ownTable\":false",
					       "{\"noun\":\"run\",\"ownTable\":false,\"name\":[]",
					       "{\"noun\":\"run\",\"ownTable\":false,\"name\":\"x\",\"head\":\"zz\""};
	char said[200];

	(void)state;
	for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
		LOCAL_STRBUF(text, 1u << 20);
		size_t start;

		strbuf_add_str(
			&text,
			"{\"format\":\"hapax-evidence-1\",\"workspace\":\"\",\"at\":\"2026-01-01T00:00:00Z\",\"subject\":");
		start = text.n;
		strbuf_add_str(&text, subjects[i]);
		evidence_seal(&text, start);
		evidence_seal(&text, 0);
		assert_int_equal(check_text(strbuf_slice(&text), said), HX_VALIDATION_ERROR);
		assert_non_null(strstr(err.detail, "subject: "));
	}
}

static void test_one_that_is_too_large(void **state)
{
	size_t n = (size_t)EVIDENCE_BYTES_MAX + 1;
	char *text = malloc(n), said[200];

	(void)state;
	memset(text, ' ', n);
	assert_int_equal(check_text(slice_of(text, n), said), HX_TOO_LARGE);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_it_is_whole, set_up),
		cmocka_unit_test_setup(test_a_changed_byte_anywhere_is_found, set_up),
		cmocka_unit_test_setup(test_bytes_around_it, set_up),
		cmocka_unit_test_setup(test_a_row_that_was_forged, set_up),
		cmocka_unit_test_setup(test_a_status_that_cannot_follow, set_up),
		cmocka_unit_test_setup(test_a_row_that_was_left_out, set_up),
		cmocka_unit_test_setup(test_the_subject_is_another, set_up),
		cmocka_unit_test_setup(test_the_ledger_of_an_account, set_up),
		cmocka_unit_test_setup(test_the_ledger_of_a_batch, set_up),
		cmocka_unit_test_setup(test_what_is_no_evidence, set_up),
		cmocka_unit_test_setup(test_members_of_another_kind, set_up),
		cmocka_unit_test_setup(test_one_that_is_too_large, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
