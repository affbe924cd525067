/* Tables of fields: what each line reads and where it goes, what is refused, and that the rest stays as it was. */
#include "definition.h"

#include "model/fields.h"

enum colour { RED, GREEN, BLUE };

struct lamp {
	const char *name, *text, *store, *address;
	bool on, dim;
	int64_t watts, after_ms, lease_ms;
	size_t bulbs;
	enum colour colour;
	struct {
		int64_t x, y;
	} at;
	int own;
};

static void read_own(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	(void)r;
	assert_string_equal(field->name, "own");
	*(int *)ret = node->type == JSON_STRING ? 1 : 2;
}

static const char *const colours[] = {"red", "green", "blue", NULL};
static const char *const levels[] = {"full", "dim", NULL};
static const struct field at_fields[] = {
	{"x", FIELD_INT(struct lamp, at.x, -9, 9)}, {"y", FIELD_INT(struct lamp, at.y, -9, 9)}, {0}};

enum { INDOOR = 1, OUTDOOR = 2 };

static const struct field lamp_fields[] = {{"name", FIELD_NAME(struct lamp, name), .required = true},
					   {"text", FIELD_TEXT(struct lamp, text, 4)},
					   {"store", FIELD_STORE(struct lamp, store)},
					   {"address", FIELD_ADDRESS(struct lamp, address), .of = OUTDOOR},
					   {"on", FIELD_BOOL(struct lamp, on)},
					   {"level", FIELD_CHOICE(struct lamp, dim, levels)},
					   {"watts", FIELD_INT(struct lamp, watts, 1, 60)},
					   {"after", FIELD_DURATION(struct lamp, after_ms)},
					   {"lease", FIELD_LEASE(struct lamp, lease_ms), .of = INDOOR},
					   {"bulbs", FIELD_SIZE(struct lamp, bulbs, 1, 3)},
					   {"colour", FIELD_CHOICE(struct lamp, colour, colours)},
					   {"at", FIELD_PART(at_fields)},
					   {"known", FIELD_KNOWN},
					   {"own", FIELD_OWN_AT(struct lamp, own, int, read_own)},
					   {0}};

static struct reader r;

static const struct json_node *object(const char *text)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	r = (struct reader){.findings = &findings, .arena = &arena, .place.file = "f"};
	findings_init(&findings, &arena);
	if (json_tree_parse(slice_str(json_text(text)), 1000, &arena, &err, &root) != HX_OK)
		fail_msg("%s", err.detail);
	return root;
}

static void said(const char *expected)
{
	print_findings();
	assert_string_equal(printed.p, expected);
}

static void every_line_has_its_place(void **state)
{
	struct lamp lamp = {0};

	(void)state;
	fields_take(
		&r,
		object("{'name': 'n', 'text': 't', 'store': 'sqlite:s', 'address': 'a:1', 'on': true, 'level': 'dim', "
		       "'watts': 60, 'after': '1s', 'lease': '2s', 'bulbs': 3, 'colour': 'blue', "
		       "'at': {'x': -9, 'y': 9}, 'known': [], 'own': ''}"),
		lamp_fields, FIELDS_ANYWHERE, &lamp);
	said("");
	assert_string_equal(lamp.name, "n");
	assert_string_equal(lamp.text, "t");
	assert_string_equal(lamp.store, "sqlite:s");
	assert_string_equal(lamp.address, "a:1");
	assert_true(lamp.on && lamp.dim);
	assert_int_equal(lamp.watts, 60);
	assert_int_equal(lamp.after_ms, 1000);
	assert_int_equal(lamp.lease_ms, 2000);
	assert_int_equal(lamp.bulbs, 3);
	assert_int_equal(lamp.colour, BLUE);
	assert_int_equal(lamp.at.x, -9);
	assert_int_equal(lamp.at.y, 9);
	assert_int_equal(lamp.own, 1);
}

static void an_unknown_one_is_refused_with_the_nearest(void **state)
{
	struct lamp lamp = {0};

	(void)state;
	fields_read(&r, object("{'name': 'n', 'wats': 5,\n'at': {'z': 5}}"), lamp_fields, &lamp);
	said("f:1: error: unknown field: \"wats\"; did you mean \"watts\"?\n"
	     "f:2: error: unknown field: at: \"z\"; there are \"x\", \"y\"\n");
	fields_read(&r, object("{'at': 5}"), lamp_fields, &lamp);
	said("f:1: error: missing field: \"name\" is missing\n"
	     "f:1: error: type: at must be an object, not 5\n");
}

static const struct field *misplaced_field;

static void note_misplaced(const struct reader *reader, const struct json_node *member, const struct field *misplaced,
			   unsigned of, const char *const *fitting)
{
	assert_int_equal(of, INDOOR);
	(void)reader;
	assert_string_equal(member->name.p, "address");
	assert_string_equal(fitting[3], "on");
	misplaced_field = misplaced;
}

static void a_field_of_another_place_is_told_and_not_read(void **state)
{
	const struct json_node *node = object("{'address': 'a:1'}");
	struct lamp lamp = {0};

	(void)state;
	fields_check(&r, node, lamp_fields, INDOOR, note_misplaced);
	assert_ptr_equal(misplaced_field, field_named(lamp_fields, slice_str("address")));
	fields_take(&r, node, lamp_fields, INDOOR, &lamp);
	assert_null(lamp.address);
	said("f:1: error: missing field: \"name\" is missing\n");
	fields_take(&r, object("{'address': 'a:1'}"), lamp_fields, FIELDS_ANYWHERE, &lamp);
	assert_string_equal(lamp.address, "a:1");
	said(""); /* who knows whether it is required here */
}

static void what_is_not_there_stays(void **state)
{
	struct lamp lamp = {.watts = 7, .colour = GREEN, .dim = true, .at = {1, 2}};

	(void)state;
	fields_read(&r, object("{'name': 'n', 'watts': 61, 'colour': 'gren', 'level': 5, 'at': {'y': 3}}"), lamp_fields,
		    &lamp);
	assert_int_equal(lamp.watts, 7);
	assert_int_equal(lamp.colour, GREEN);
	assert_true(lamp.dim);
	assert_int_equal(lamp.at.x, 1);
	assert_int_equal(lamp.at.y, 3);
	said("f:1: error: type: level must be a string, not 5\n"
	     "f:1: error: value: watts is 61; it must be a whole number from 1 to 60\n"
	     "f:1: error: value: colour is \"gren\", which is not known; did you mean \"green\"?\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(every_line_has_its_place),
		model_test(an_unknown_one_is_refused_with_the_nearest),
		model_test(a_field_of_another_place_is_told_and_not_read),
		model_test(what_is_not_there_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
