/* See bar.h. */
#include "cli/bar.h"

#include "cli/terminal.h"

#define RATE_MS 5000

void bar_add(struct strbuf *out, int64_t done, int64_t total, size_t columns)
{
	size_t full = total > 0 ? (size_t)((double)done / (double)total * (double)columns) : 0;

	for (size_t i = 0; i < columns; i++)
		strbuf_add_str(out, i < full ? "█" : "░");
}

size_t bar_told_columns(void)
{
	size_t sixth = terminal_told_columns() / 6;

	return sixth < BAR_COLUMNS ? sixth : BAR_COLUMNS;
}

int bar_percent(int64_t done, int64_t total)
{
	return total > 0 ? (int)((double)done / (double)total * 100) : 0;
}

/* In tenths, over the last RATE_MS or twice that; -1: it is too early to tell. */
static int64_t rate_tenths(int64_t done, int64_t waited_ms)
{
	static struct look {
		int64_t done, waited_ms;
	} old, older;
	static bool looked;
	struct look now = {done, waited_ms};
	int64_t ms;

	if (!looked)
		older = old = now;
	looked = true;
	if (waited_ms - old.waited_ms > RATE_MS) {
		older = old;
		old = now;
	}
	ms = waited_ms - older.waited_ms;
	return ms > 0 ? (done - older.done) * 10000 / ms : -1;
}

void bar_add_rate(struct strbuf *out, int64_t done, int64_t waited_ms)
{
	int64_t tenths = rate_tenths(done, waited_ms);

	if (tenths >= 0)
		strbuf_addf(out, "  %lld.%lld/s", (long long)(tenths / 10), (long long)(tenths % 10));
}
