/* See audit_chain.h. */
#include "flow/audit_chain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "flow/batch.h"
#include "flow/job.h"
#include "flow/run.h"

/* ---- nouns ---- */

const struct audit_noun audit_entity = {.name = "entity"};
const struct audit_noun audit_table_entity = {.name = "entity", .follows_user = true};
const struct audit_noun audit_job = {.name = "job", .prefix = "job", .ways = &job_ways};
const struct audit_noun audit_run = {.name = "run", .prefix = "run", .strides = true, .ways = &run_ways};
const struct audit_noun audit_batch = {.name = "batch", .prefix = "batch", .ways = &batch_ways};
const struct audit_noun audit_account = {.name = "account", .ways = &account_ways};
const struct audit_noun audit_schedule = {.name = "schedule", .prefix = "sched"};

bool audit_is_terminal(const struct audit_noun *noun, struct slice status)
{
	return noun->ways && ways_is_terminal(noun->ways, status);
}

/* ---- noting ---- */

static void audit_chain_note(struct audit_finding *finding, const struct audit_place *place, const char *what)
{
	*finding = (struct audit_finding){
		.there = true, .id = place->id, .row = place->row, .seq = place->seq, .what = what};
}

bool audit_equal(struct audit_finding *finding, const struct audit_place *place, const char *what, int64_t expected,
		 int64_t found)
{
	if (expected == found)
		return true;
	if (!finding->there) {
		audit_chain_note(finding, place, what);
		snprintf(finding->expected, sizeof finding->expected, "%lld", (long long)expected);
		snprintf(finding->found, sizeof finding->found, "%lld", (long long)found);
	}
	return false;
}

bool audit_holds(struct audit_finding *finding, const struct audit_place *place, bool holds, const char *what,
		 const char *expected, struct slice found)
{
	if (!holds && !finding->there) {
		audit_chain_note(finding, place, what);
		snprintf(finding->expected, sizeof finding->expected, "%s", expected);
		snprintf(finding->found, sizeof finding->found, "%s", excerpt_of(found).text);
	}
	return holds;
}

bool audit_same_hash(struct audit_finding *finding, const struct audit_place *place, const char *what,
		     const uint8_t expected[SHA256_BYTES], struct slice found)
{
	char wanted[2 * SHA256_BYTES + 1], there[2 * SHA256_BYTES + 1] = "no hash";

	if (slice_eq(found, slice_of(expected, SHA256_BYTES)))
		return true;
	sha256_hex(expected, wanted);
	if (found.n == SHA256_BYTES)
		sha256_hex((const uint8_t *)found.p, there);
	if (finding->there)
		return false;
	(void)audit_holds(finding, place, /* holds= */ false, what, wanted, slice_str(""));
	snprintf(finding->found, sizeof finding->found, "%s", there); /* an excerpt would cut it */
	return false;
}

/* ---- rows ---- */

void audit_chain_start(struct audit_chain *chain, int64_t subject)
{
	*chain = (struct audit_chain){.last = {.subject = subject}};
}

/* As much of it as is kept. */
static struct slice last_status(const struct audit_chain *chain)
{
	return slice_of(chain->to, chain->to_n < sizeof chain->to ? chain->to_n : sizeof chain->to);
}

static bool is_last_status(const struct audit_chain *chain, struct slice status)
{
	struct slice kept = last_status(chain);

	return status.n == chain->to_n && slice_eq(slice_of(status.p, kept.n), kept);
}

static bool is_creation(const struct history_row *row, const struct audit_place *place, struct audit_finding *finding)
{
	return audit_equal(finding, place, "seq", 1, row->seq) &&
	       audit_holds(finding, place, row->from.n == 0, "from", "no status: it is the creation", row->from) &&
	       audit_equal(finding, place, "version", 1, row->version) &&
	       audit_equal(finding, place, "fence", 0, row->fence);
}

static bool is_not_so(struct audit_finding *finding, const struct audit_place *place, const char *what, int64_t found,
		      const char *format, ...) HX_PRINTF(5, 6);

/* A number, and words for what was expected. Always false. */
static bool is_not_so(struct audit_finding *finding, const struct audit_place *place, const char *what, int64_t found,
		      const char *format, ...)
{
	char words[AUDIT_WORDS_BYTES], number[24];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	snprintf(number, sizeof number, "%lld", (long long)found);
	return audit_holds(finding, place, /* holds= */ false, what, words, slice_str(number));
}

static bool version_rises(const struct audit_chain *chain, const struct audit_noun *noun, const struct history_row *row,
			  const struct audit_place *place, struct audit_finding *finding)
{
	int64_t before = chain->last.version;

	if (noun->follows_user || row->version == audit_sum(before, 1) || (noun->strides && row->version > before))
		return true;
	return is_not_so(finding, place, "version", row->version, "%lld%s", (long long)audit_sum(before, 1),
			 noun->strides ? " or more" : "");
}

static bool fence_is_kept(const struct audit_chain *chain, const struct history_row *row,
			  const struct audit_place *place, struct audit_finding *finding)
{
	int64_t before = chain->last.fence;

	if (row->fence == before || row->fence == audit_sum(before, 1))
		return true;
	return is_not_so(finding, place, "fence", row->fence, "%lld or %lld", (long long)before,
			 (long long)audit_sum(before, 1));
}

static bool is_led_to(const struct audit_noun *noun, const struct history_row *row, const struct audit_place *place,
		      struct audit_finding *finding)
{
	const char *from = excerpt_of(row->from).text;
	char words[AUDIT_WORDS_BYTES];

	if (!noun->ways || ways_lead(noun->ways, /* by= */ NULL, row->from, row->to))
		return true;
	if (!row->from.n)
		snprintf(words, sizeof words, "a status that a %s begins in", noun->name);
	else
		snprintf(words, sizeof words,
			 ways_go_on(noun->ways, row->from) ? "a status that can follow %s"
							   : "no row after %s, which is the end",
			 from);
	return audit_holds(finding, place, /* holds= */ false, "status", words, row->to);
}

static bool joins_up(const struct audit_chain *chain, const struct audit_noun *noun, const struct history_row *row,
		     const struct audit_place *place, struct audit_finding *finding)
{
	if (!noun->follows_user && !is_last_status(chain, row->from))
		return audit_holds(finding, place, /* holds= */ false, "from", excerpt_of(last_status(chain)).text,
				   row->from);
	return version_rises(chain, noun, row, place, finding) && fence_is_kept(chain, row, place, finding);
}

static void audit_chain_go_on(struct audit_chain *chain, const struct history_row *row,
			      const uint8_t hash[SHA256_BYTES])
{
	chain->last = *row;
	chain->last.from = chain->last.to = chain->last.node = slice_of(NULL, 0);
	chain->to_n = row->to.n;
	if (row->to.n)
		memcpy(chain->to, row->to.p, row->to.n < sizeof chain->to ? row->to.n : sizeof chain->to);
	memcpy(chain->head, hash, SHA256_BYTES);
}

bool audit_chain_add(struct audit_chain *chain, const struct audit_noun *noun, const struct history_row *row,
		     struct slice hash, struct audit_finding *finding)
{
	struct audit_place place = {row->subject, "history row", row->seq};
	bool first = chain->last.seq == 0;
	uint8_t head[SHA256_BYTES];

	if (!first && !audit_equal(finding, &place, "seq", audit_sum(chain->last.seq, 1), row->seq))
		return false;
	history_link(row, slice_of(chain->head, first ? 0 : SHA256_BYTES), head);
	if (!audit_same_hash(finding, &place, "hash", head, hash))
		return false;
	if (first ? !is_creation(row, &place, finding) : !joins_up(chain, noun, row, &place, finding))
		return false;
	if (!audit_holds(finding, &place, !noun->ways || ways_status(noun->ways, row->to), "status",
			 "one that it can have", row->to) ||
	    !is_led_to(noun, row, &place, finding))
		return false;
	audit_chain_go_on(chain, row, head);
	return true;
}

bool audit_chain_end(const struct audit_chain *chain, const struct audit_subject *subject,
		     struct audit_finding *finding)
{
	const struct history_row *last = &chain->last;
	struct audit_place place = {subject->id, "history row", audit_sum(last->seq, 1)};

	if (!audit_holds(finding, &place, last->seq >= subject->seq, "seq", "a row: its subject has come further",
			 slice_str("none")))
		return false;
	place.seq = last->seq;
	if (!audit_holds(finding, &place, last->seq == subject->seq, "seq", "no row: its subject has not come so far",
			 slice_str("a row of a unit that was not won")))
		return false;
	place = (struct audit_place){.id = subject->id};
	return audit_holds(finding, &place, is_last_status(chain, subject->status), "status",
			   excerpt_of(last_status(chain)).text, subject->status) &&
	       audit_equal(finding, &place, "version", last->version, subject->version) &&
	       audit_equal(finding, &place, "fence", last->fence, subject->fence) &&
	       audit_equal(finding, &place, "op", last->op, subject->op) &&
	       audit_equal(finding, &place, "time", last->at, subject->at) &&
	       audit_same_hash(finding, &place, "head", chain->head, subject->head);
}
