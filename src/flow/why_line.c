/* What stands in line for a slot, or for its time: see why.h. */
#include "flow/why.h"

#include "flow/job.h"

/* What waits for a slot, or for its time: of what the limit is, and what there is one of. */
struct in_line {
	bool rate;
	int64_t due_at;
	const char *of, *one, *at;
	struct slice name, key; /* key.p NULL: one count for all */
	int64_t held, before;
};

static void add_line_key(struct why *why, const struct in_line *l)
{
	if (!l->key.p)
		return;
	strbuf_add_str(&why->words, " for ");
	why_add_words(why, l->key);
}

static void add_line(struct why *why, enum why_reason reason, const struct in_line *l)
{
	const char *s = l->held == 1 ? "" : "s", *are = l->held == 1 ? "is" : "are";

	why->reason = reason;
	if (l->rate) {
		strbuf_add_str(&why->words, "waits for its time, ");
		why_add_moment(why, "", l->due_at);
		strbuf_addf(&why->words, ": the %s \"%.*s\" has begun as many %ss as its rate allows", l->of,
			    SLICE_ARGS(l->name), l->one);
		add_line_key(why, l);
		return;
	}
	strbuf_addf(&why->words, "waits for a slot: %lld %s%s of the %s \"%.*s\" %s %s", (long long)l->held, l->one, s,
		    l->of, SLICE_ARGS(l->name), are, l->at);
	add_line_key(why, l);
	strbuf_addf(&why->words, ", and that is its limit; %lld %s before it in line", (long long)l->before,
		    l->before == 1 ? "is" : "are");
}

/* As the run's version has them: whether they have a key. */
static const struct limits *limits_of_action(const struct run_definition *whole, struct slice name)
{
	for (size_t i = 0; i < whole->actions_n; i++)
		if (slice_is(name, whole->actions[i].name))
			return &whole->actions[i].limits;
	return &whole->limits;
}

/* A run that stands in line for a slot, of its workflow or of the action that it would call. */
void why_slot(struct why *why, const struct run_row *row, const struct db_rows *line)
{
	const struct run_definition *whole = row->machine->definition;
	bool of_action = db_cell(line, 0, 4)->type == DB_TEXT;
	struct slice name = of_action ? db_cell(line, 0, 4)->s : slice_str(whole->name);
	const struct limits *limits = of_action ? limits_of_action(whole, name) : &whole->limits;
	const char *of = of_action ? "action" : "workflow", *one = of_action ? "call" : "run";
	bool rate = db_cell(line, 0, 3)->i != 0, keyed = (rate ? limits->rate.by : limits->concurrency.by) != NULL;

	add_line(why, rate ? WHY_RUN_RATE : WHY_RUN_SLOT,
		 &(struct in_line){
			 .rate = rate,
			 .due_at = row->due_at,
			 .of = of,
			 .name = name,
			 .one = one,
			 .at = of_action ? "under way" : "at work",
			 .key = keyed ? db_cell(line, 0, 0)->s : slice_of(NULL, 0),
			 .held = db_cell(line, 0, 1)->i,
			 .before = db_cell(line, 0, 2)->i,
		 });
}

void why_job_line(struct why *why, const struct db_rows *rows)
{
	struct slice key = db_cell(rows, 0, WHY_CELL_LINE_KEY)->s;
	bool rate = db_cell(rows, 0, WHY_CELL_LINE)->i == 2;
	bool of_action = slice_is(db_cell(rows, 0, WHY_CELL_QUEUE)->s, JOB_QUEUE_AFTER_EFFECTS);

	add_line(why, rate ? WHY_JOB_TIMER : WHY_JOB_LIMIT,
		 &(struct in_line){
			 .rate = rate,
			 .due_at = db_cell(rows, 0, WHY_CELL_DUE_AT)->i,
			 .of = of_action ? "action" : "queue",
			 .name = db_cell(rows, 0, of_action ? WHY_CELL_ACTION : WHY_CELL_QUEUE)->s,
			 .one = of_action ? "call" : "job",
			 .at = of_action ? "under way" : "at work",
			 .key = slice_is(key, "null") ? slice_of(NULL, 0) : key,
			 .held = db_cell(rows, 0, WHY_CELL_LINE_HELD)->i,
			 .before = db_cell(rows, 0, WHY_CELL_LINE_BEFORE)->i,
		 });
}
