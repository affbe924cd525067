/* What a task is told apart by: every byte of it, but for what its kind names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/account.h"
#include "flow/batch_cancel.h"
#include "flow/batch_clean.h"
#include "flow/batch_hand.h"
#include "flow/batch_lead.h"
#include "flow/batch_verb.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "flow/job_work.h"
#include "flow/run_drive.h"
#include "flow/run_verb.h"
#include "flow/single.h"
#include "sim/fingerprint.h"
#include "task/shape.h"

static int64_t place_of_made(struct sim *sim, int64_t job)
{
	(void)sim;
	return job / 10;
}

static struct fingerprint_ops ops;
static const struct fingerprint_world world = {&ops, place_of_made, NULL, NULL};

static uint64_t of_task(const void *task)
{
	return fingerprint_task(task, &world, 1);
}

/* ---- a task with everything in it ---- */

struct leaf {
	int64_t number;
	const char *text;
};

struct sample {
	struct task task;
	int unnamed;
	int64_t ignored, fresh[2], op, job;
	bool also_unnamed;
	const char *text;
	struct slice slice, key;
	struct leaf inner[2];
	const struct leaf *object;
	union {
		struct task last;
		char room[200];
	};
};

/* clang-format off */
static const struct task_shape leaf_shape = SHAPE(struct leaf, NULL, PART(TEXT, struct leaf, text));

static const struct task_shape sample_shape = SHAPE(struct sample, NULL,
	PART(IGNORED, struct sample, ignored),
	PART(FRESH, struct sample, fresh),
	PART(OP, struct sample, op),
	PART(MADE, struct sample, job),
	PART(TEXT, struct sample, text),
	PART(SLICE, struct sample, slice),
	PART(KEY, struct sample, key),
	PART_WITH(INNER, struct sample, inner, &leaf_shape),
	PART_WITH(OBJECT, struct sample, object, &leaf_shape),
	PART_LAST(TASK, struct sample, last));
/* clang-format on */

static const struct task_kind sample_kind = {.name = "sample", .size = sizeof(struct sample), .shape = &sample_shape};
static const struct task_kind bare_kind = {.name = "bare", .size = sizeof(struct sample)};
static const struct task_kind small_kind = {.name = "small", .size = sizeof(struct task) + 8};

static struct sample new_sample(void)
{
	struct sample s;

	memset(&s, 0, sizeof s);
	memset(&ops, 0, sizeof ops);
	task_init(&s.task, &sample_kind, /* topic= */ 0);
	return s;
}

/* Nobody has named them, and they count. */
static void fields_without_a_name_count(void **state)
{
	struct sample a = new_sample(), b = a;

	(void)state;
	b.unnamed = 1;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	b.also_unnamed = true;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	b.inner[1].number = 1;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	b.task.woken = true;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	b.ignored = 1;
	b.task.turn = 7;
	assert_int_equal(of_task(&a), of_task(&b));
}

static void without_a_shape_all_counts(void **state)
{
	struct sample a = new_sample();
	uint64_t hash;

	(void)state;
	a.task.kind = &bare_kind;
	hash = of_task(&a);
	for (size_t i = sizeof(struct task); i < sizeof a; i++) {
		((unsigned char *)&a)[i] ^= 1;
		assert_int_not_equal(of_task(&a), hash);
		((unsigned char *)&a)[i] ^= 1;
	}
}

static void ids_count_as_there_and_landed(void **state)
{
	struct sample a = new_sample(), b = a;

	(void)state;
	a.fresh[1] = 5;
	b.fresh[1] = 6;
	assert_int_equal(of_task(&a), of_task(&b));
	b.fresh[1] = 0;
	assert_int_not_equal(of_task(&a), of_task(&b));
	a = b = new_sample();
	a.op = 5;
	b.op = 6;
	assert_int_equal(of_task(&a), of_task(&b));
	fingerprint_landed(&ops, 6);
	assert_int_not_equal(of_task(&a), of_task(&b));
	fingerprint_landed(&ops, 5);
	assert_int_equal(of_task(&a), of_task(&b));
	a.op = FINGERPRINT_OPS_MAX; /* too many to remember: each is another */
	b.op = FINGERPRINT_OPS_MAX + 1;
	assert_int_not_equal(of_task(&a), of_task(&b));
}

static void jobs_count_as_their_place(void **state)
{
	struct sample a = new_sample(), b = a;

	(void)state;
	a.job = 11;
	b.job = 12;
	assert_int_equal(of_task(&a), of_task(&b));
	b.job = 21;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b.job = 0;
	assert_int_not_equal(of_task(&a), of_task(&b));
}

/* Whoever keeps a fingerprint has to know what else decides it: of a unit that has landed, nothing more can. */
static void what_else_decides_is_told(void **state)
{
	struct sample a = new_sample();
	unsigned of = 0;
	const struct fingerprint_world telling = {&ops, place_of_made, NULL, &of};

	(void)state;
	a.fresh[0] = 5;
	fingerprint_task(&a.task, &telling, 1);
	assert_int_equal(of, 0);
	a.op = 6;
	fingerprint_task(&a.task, &telling, 1);
	assert_int_equal(of, FINGERPRINT_OF_OPS);
	fingerprint_landed(&ops, 6);
	fingerprint_landed(&ops, 6);
	assert_int_equal(ops.n, 1);
	of = 0;
	fingerprint_task(&a.task, &telling, 1);
	assert_int_equal(of, 0);
	a.job = 7;
	fingerprint_task(&a.task, &telling, 1);
	assert_int_equal(of, FINGERPRINT_OF_MADE);
}

static void texts_count_by_what_they_say(void **state)
{
	char here[] = "CANCELLING", there[] = "CANCELLING", ended[] = "CANCELLED";
	struct sample a = new_sample(), b = a;
	struct leaf one = {1, here}, same = {1, there}, other = {1, ended};

	(void)state;
	a.text = here;
	b.text = there;
	a.slice = slice_str(here);
	b.slice = slice_str(there);
	a.object = &one;
	b.object = &same;
	a.inner[1].text = here;
	b.inner[1].text = there;
	assert_int_equal(of_task(&a), of_task(&b));
	b.text = ended;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b.text = here;
	b.slice = slice_str(ended);
	assert_int_not_equal(of_task(&a), of_task(&b));
	b.slice = a.slice;
	b.object = &other;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b.object = NULL;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b.object = a.object;
	b.inner[1].text = ended;
	assert_int_not_equal(of_task(&a), of_task(&b));
}

static void none_is_not_empty(void **state)
{
	struct sample a = new_sample(), b = a;

	(void)state;
	b.text = "";
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	b.slice = slice_str("");
	assert_int_not_equal(of_task(&a), of_task(&b));
}

static void the_id_of_a_question_does_not_count(void **state)
{
	struct sample a = new_sample(), b = a;

	(void)state;
	a.key = slice_str("invoice/1/close/probe/ask_1");
	b.key = slice_str("invoice/1/close/probe/ask_2");
	assert_int_equal(of_task(&a), of_task(&b));
	b.key = slice_str("invoice/2/close/probe/ask_2");
	assert_int_not_equal(of_task(&a), of_task(&b));
	a.key = slice_str("invoice/1/close/1");
	b.key = slice_str("invoice/1/close/2");
	assert_int_not_equal(of_task(&a), of_task(&b));
}

/* A task in a task: to its own end, and not to that of an earlier one. */
static void inner_tasks_count_to_their_end(void **state)
{
	struct sample a = new_sample(), b;

	(void)state;
	task_init(&a.last, &small_kind, /* topic= */ 0);
	b = a;
	((char *)&b.last)[sizeof(struct task)] = 1;
	assert_int_not_equal(of_task(&a), of_task(&b));
	b = a;
	((char *)&b.last)[small_kind.size] = 1;
	assert_int_equal(of_task(&a), of_task(&b));
	b.last.kind = NULL; /* there is none */
	assert_int_not_equal(of_task(&a), of_task(&b));
}

/* ---- the engine's own ---- */

static bool is_named(const struct task_shape *shape, unsigned at)
{
	for (unsigned i = 0; i < shape->parts_n; i++) {
		const struct task_part *part = &shape->parts[i];

		if (at < part->offset || at >= part->offset + part->size)
			continue;
		return part->kind != PART_INNER || is_named(part->shape, (at - part->offset) % part->shape->size);
	}
	return false;
}

/* Every byte counts, or is of a field that the shape names. */
static void assert_all_counts(const struct task_kind *kind)
{
	struct task_shape shape = *kind->shape;
	unsigned char *bytes = calloc(1, kind->size);
	uint64_t hash;

	shape.forget = NULL; /* of what stands in the middle of something, which this does not */
	assert_int_equal(shape.size, kind->size);
	hash = fingerprint_struct(bytes, &shape, &world, 1);
	for (unsigned i = 0; i < kind->size; i++) {
		if (is_named(&shape, i))
			continue;
		bytes[i] = 1;
		if (fingerprint_struct(bytes, &shape, &world, 1) == hash)
			fail_msg("byte %u of a %s does not count, and is not named", i, kind->name);
		bytes[i] = 0;
	}
	free(bytes);
}

static union {
	struct task task;
	struct single single;
	struct job_run job_run;
	struct janitor janitor;
	struct account_credit credit;
	struct entity_step step;
	struct run_drive drive;
	struct run_verb run_verb;
	struct batch_lead lead;
	struct batch_hand hand;
	struct batch_clean clean;
	struct batch_cancel cancel;
	struct batch_verb batch_verb;
	struct job_claim job_claim;
	struct job_settle job_settle;
} any;

static const struct batch_hold no_hold;

static void every_byte_counts_or_is_named(void **state)
{
	static const struct step_request step;

	(void)state;
	single_init(&any.single, NULL, NULL, NULL);
	assert_all_counts(any.task.kind);
	job_run_init(&any.job_run, 1, NULL, NULL, NULL, NULL);
	assert_all_counts(any.task.kind);
	janitor_init(&any.janitor, NULL, /* budget= */ 1, (struct mono_time){0});
	assert_all_counts(any.task.kind);
	account_credit_init(&any.credit, &(struct account_credit_request){0});
	assert_all_counts(any.task.kind);
	entity_step_init(&any.step, &step, NULL);
	assert_all_counts(any.task.kind);
	job_claim_init(&any.job_claim, &(struct job_claim_request){.queues_n = 1, .max = 1}, NULL);
	assert_all_counts(any.task.kind);
	job_settle_init(&any.job_settle, &(struct job_settle_request){0}, NULL);
	assert_all_counts(any.task.kind);
	run_drive_init(&any.drive, 1, NULL, NULL);
	assert_all_counts(any.task.kind);
	run_verb_init(&any.run_verb, &(struct run_verb_request){0}, NULL);
	assert_all_counts(any.task.kind);
	batch_lead_init(&any.lead, 1, NULL, NULL, NULL, NULL);
	assert_all_counts(any.task.kind);
	batch_hand_init(&any.hand, &no_hold, NULL);
	assert_all_counts(any.task.kind);
	batch_clean_init(&any.clean, &no_hold, 0, NULL);
	assert_all_counts(any.task.kind);
	batch_cancel_init(&any.cancel, slice_str("default"), 1, NULL, NULL);
	assert_all_counts(any.task.kind);
	batch_verb_init(&any.batch_verb, &(struct batch_verb_request){0}, NULL);
	assert_all_counts(any.task.kind);
}

/* Two letters of a status told them apart once, and two that differ in neither were one. */
static void cancelling_is_not_cancelled(void **state)
{
	uint64_t hash;

	(void)state;
	run_drive_init(&any.drive, 1, NULL, NULL);
	any.drive.row.status = any.drive.move.to = RUN_CANCELLING;
	hash = of_task(&any);
	any.drive.row.status = RUN_CANCELLED;
	assert_int_not_equal(of_task(&any), hash);
	any.drive.row.status = RUN_CANCELLING;
	any.drive.move.to = RUN_CANCELLED;
	assert_int_not_equal(of_task(&any), hash);
	batch_lead_init(&any.lead, 1, NULL, NULL, NULL, NULL);
	any.lead.task.at = LEAD_SEIZING;
	any.lead.row.status = BATCH_CANCELLING;
	hash = of_task(&any);
	any.lead.row.status = BATCH_CANCELLED;
	assert_int_not_equal(of_task(&any), hash);
}

static void all_of_a_step_decides(void **state)
{
	static const struct step_request step;
	uint64_t hash;

	(void)state;
	entity_step_init(&any.step, &step, NULL);
	hash = of_task(&any);
	any.step.overrun = true;
	assert_int_not_equal(of_task(&any), hash);
	any.step.overrun = false;
	any.step.not_before_ms = 1;
	assert_int_not_equal(of_task(&any), hash);
	any.step.not_before_ms = 0;
	any.step.rewritten = 1;
	assert_int_not_equal(of_task(&any), hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_without_a_name_count),
		cmocka_unit_test(without_a_shape_all_counts),
		cmocka_unit_test(ids_count_as_there_and_landed),
		cmocka_unit_test(jobs_count_as_their_place),
		cmocka_unit_test(what_else_decides_is_told),
		cmocka_unit_test(texts_count_by_what_they_say),
		cmocka_unit_test(none_is_not_empty),
		cmocka_unit_test(the_id_of_a_question_does_not_count),
		cmocka_unit_test(inner_tasks_count_to_their_end),
		cmocka_unit_test(every_byte_counts_or_is_named),
		cmocka_unit_test(cancelling_is_not_cancelled),
		cmocka_unit_test(all_of_a_step_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
