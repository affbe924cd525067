/* The lookups that the engine makes while it runs. */
#include "definition.h"

static const char text[] =
	"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['new', 'sent', 'late', 'paying', 'paid'], 'initial_status': 'new', 'steps': [\n"
	"{ 'step_id': 3, 'step_key': 'pay', 'status': 'late', 'successful_state': 'paid', 'claim_state': {'zed': ['paying', 'sent']} },\n"
	"{ 'step_id': 2, 'step_key': 'pay', 'status': 'sent', 'successful_state': 'paid', 'claim_state': {'amy': ['paying', 'sent']} },\n"
	"{ 'step_id': 1, 'step_key': 'send', 'status': 'new', 'successful_state': 'sent' },\n"
	"{ 'step_id': 4, 'step_key': 'age', 'status': 'sent', 'successful_state': 'late' } ] }";

static void steps(void **state)
{
	const struct workflow *w = parse_clean(text);

	(void)state;
	assert_int_equal(workflow_step(w, slice_str("pay"), slice_str("late"), slice_str("default"))->step_id, 3);
	assert_int_equal(workflow_step(w, slice_str("pay"), slice_str("sent"), slice_str("default"))->step_id, 2);
	assert_int_equal(workflow_step(w, slice_str("send"), slice_str("new"), slice_str("default"))->step_id, 1);
	assert_int_equal(workflow_step(w, slice_str("age"), slice_str("sent"), slice_str("default"))->step_id, 4);
	assert_null(workflow_step(w, slice_str("pay"), slice_str("new"), slice_str("default")));
	assert_null(workflow_step(w, slice_str("pay"), slice_str(""), slice_str("default")));
	assert_null(workflow_step(w, slice_str("zzz"), slice_str("zzz"), slice_str("default")));
	assert_null(workflow_step(w, slice_of("pay\0", 4), slice_str("sent"), slice_str("default")));
	assert_null(workflow_step(w, slice_of(NULL, 0), slice_of(NULL, 0), slice_str("default")));
	assert_true(workflow_has_step(w, slice_str("age")));
	assert_true(workflow_has_step(w, slice_str("pay")));
	assert_true(workflow_has_step(w, slice_str("send")));
	assert_false(workflow_has_step(w, slice_str("pa")));
	assert_false(workflow_has_step(w, slice_str("payx")));
	assert_false(workflow_has_step(w, slice_str("")));
	assert_int_equal(w->steps[0].step_id, 3); /* the steps themselves stay in the order of the text */
}

static void statuses(void **state)
{
	const struct workflow *w = parse_clean(text);

	(void)state;
	for (size_t i = 0; i < w->statuses_n; i++)
		assert_true(workflow_has_status(w, slice_str(w->statuses[i])));
	assert_false(workflow_has_status(w, slice_str("")));
	assert_false(workflow_has_status(w, slice_str("pai")));
	assert_false(workflow_has_status(w, slice_of("paid\0", 5)));
	assert_true(workflow_is_claim_status(w, slice_str("paying")));
	assert_false(workflow_is_claim_status(w, slice_str("paid")));
	assert_string_equal(workflow_revert_of(w, slice_str("paying")), "sent");
	assert_null(workflow_revert_of(w, slice_str("sent")));
	assert_null(workflow_revert_of(w, slice_str("nowhere")));
}

static void views(void **state)
{
	const struct workflow *w = parse_clean(text);
	const struct step *late = workflow_step(w, slice_str("pay"), slice_str("late"), slice_str("default"));

	(void)state;
	assert_int_equal(w->requesters_n, 2);
	assert_null(workflow_view(w, late, slice_str("amy"))->claim_into);
	assert_string_equal(workflow_view(w, late, slice_str("zed"))->claim_into, "paying");
	assert_ptr_equal(workflow_view(w, late, slice_str("default")), &late->views[2]);
	assert_ptr_equal(workflow_view(w, late, slice_of(NULL, 0)), &late->views[2]);
	assert_string_equal(workflow_view_name(w, 0), "amy");
	assert_string_equal(workflow_view_name(w, 2), "anyone else");
}

static void nothing_to_find(void **state)
{
	const struct workflow *w = parse_clean(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [] }");

	(void)state;
	assert_null(workflow_step(w, slice_str("a"), slice_str("a"), slice_str("default")));
	assert_false(workflow_has_step(w, slice_str("a")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(steps),
		model_test(statuses),
		model_test(views),
		model_test(nothing_to_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
