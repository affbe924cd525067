/* See bulk_kinds.h. */
#include "support/bulk_kinds.h"

#include <stdio.h>

#include "flow/bulk.h"

#define ASKS 2048 /* that may be under way at once: what a unit borrows must outlive it */

static struct slice workspace_of(const struct kind_args *args)
{
	static char names[ASKS][32];
	static size_t names_n;
	char *name = names[names_n++ % ASKS];

	snprintf(name, sizeof *names, "w%lld", (long long)args->subject);
	return slice_str(name);
}

static void create(struct unit *unit, const struct kind_args *args, int64_t id)
{
	struct bulk_spec spec = {.subject = id,
				 .workspace = workspace_of(args),
				 .requester = slice_str("me"),
				 .key = slice_str("key"),
				 .verb = slice_str("cancel"),
				 .kind = slice_str("run"),
				 .condition = slice_str("status = 'PENDING'"),
				 .arguments = slice_str("{}")};

	bulk_create(unit, &args->stamp, &spec);
}

void bulk_make(struct unit *unit, const struct kind_args *args)
{
	create(unit, args, args->subject);
}

void bulk_create_key(struct unit *unit, const struct kind_args *args)
{
	create(unit, args, kind_made(args->subject, args->stamp.op));
}

static void freeze(struct unit *unit, const struct kind_args *args, int64_t to, const char *ids, int64_t n, bool last)
{
	struct bulk_slice slice = {.subject = args->subject, .to = to, .n = n, .ids = slice_str(ids), .last = last};

	bulk_freeze(unit, &slice);
}

void bulk_freeze_two(struct unit *unit, const struct kind_args *args)
{
	freeze(unit, args, 12, "[11,12]", 2, /* last= */ true);
}

void bulk_freeze_some(struct unit *unit, const struct kind_args *args)
{
	freeze(unit, args, args->stamp.op, "[21,22]", 2, /* last= */ false);
}

void bulk_freeze_last(struct unit *unit, const struct kind_args *args)
{
	freeze(unit, args, args->stamp.op, "[31]", 1, /* last= */ true);
}

void bulk_go_on(struct unit *unit, const struct kind_args *args)
{
	bulk_renew(unit, args->subject);
}

static void end_item(struct unit *unit, const struct kind_args *args, int64_t n)
{
	bulk_item_ended(unit, args->subject, n, args->stamp.op % 2 ? BULK_DONE : BULK_SKIPPED, slice_of(NULL, 0));
}

void bulk_end_first(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, 0);
}

void bulk_end_second(struct unit *unit, const struct kind_args *args)
{
	end_item(unit, args, 1);
}

void bulk_finish_it(struct unit *unit, const struct kind_args *args)
{
	bulk_finish(unit, &args->stamp, args->subject);
}

void bulk_cancel_it(struct unit *unit, const struct kind_args *args)
{
	bulk_cancel(unit, workspace_of(args), args->subject);
}
