/* See search_page.h. */
#include "flow/search_page.h"

#include "flow/answer.h"
#include "task/states.h"

#define IDS_BYTES_MAX (64u << 10)

enum { PAGE_NEW, PAGE_PROBING, PAGE_WALKING, PAGE_SHOWING, PAGE_DONE };

static bool has_failed(struct search_page *p, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON)
		return false;
	task_end(&p->task, flow_failure(answer->result));
	return true;
}

static void take_start(struct search_page *p, const struct answer *answer UNUSED)
{
	p->ids = arena_alloc(p->arena, (size_t)p->limit * sizeof *p->ids);
	if (!p->ids)
		task_end(&p->task, HX_NO_MEMORY);
	else
		task_go(&p->task, search_begin(&p->search) ? PAGE_PROBING : PAGE_WALKING);
}

static void take_probed(struct search_page *p, const struct answer *answer)
{
	if (has_failed(p, answer))
		return;
	p->unknown = search_take_probe(&p->search, answer->result);
	if (p->unknown)
		task_end(&p->task, HX_BAD_QUERY);
	else
		task_go(&p->task, PAGE_WALKING);
}

static void show(struct search_page *p)
{
	struct strbuf text;

	if (p->ids_n == 0) {
		p->show(p, &(struct db_rows){0});
		task_end(&p->task, HX_OK);
		return;
	}
	strbuf_init(&text, IDS_BYTES_MAX);
	for (size_t i = 0; i < p->ids_n; i++)
		strbuf_addf(&text, "%s%lld", i ? "," : "[", (long long)p->ids[i]);
	strbuf_add_char(&text, ']');
	p->text = arena_keep(p->arena, &text);
	if (p->text.p)
		task_go(&p->task, PAGE_SHOWING);
	else
		task_end(&p->task, HX_NO_MEMORY);
}

/* Takes what matches, up to one more than are shown, which tells that there is a next page. */
static bool take_slice(struct search_page *p, const struct db_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (!search_row(&p->search, rows, i))
			continue;
		if ((int64_t)p->ids_n == p->limit) {
			p->more = true;
			return false;
		}
		p->ids[p->ids_n++] = p->search.after.id;
		p->next = p->search.after;
	}
	return true;
}

static void take_walked(struct search_page *p, const struct answer *answer)
{
	struct search_slice slice;

	if (has_failed(p, answer))
		return;
	if (!search_take(&p->search, answer->result, &slice)) {
		task_go(&p->task, PAGE_WALKING);
		return;
	}
	if (!take_slice(p, slice.rows) || slice.last) {
		show(p);
	} else if (++p->slices == SEARCH_SLICES_MAX) {
		p->more = true;
		p->next = p->search.after;
		show(p);
	} else {
		task_go(&p->task, PAGE_WALKING);
	}
}

static void take_shown(struct search_page *p, const struct answer *answer)
{
	if (has_failed(p, answer))
		return;
	p->show(p, &answer->result->rows[0]);
	task_end(&p->task, HX_OK);
}

TASK_UNIT(probe, struct search_page, p, search_build_probe(&p->search, unit));
TASK_UNIT(walk, struct search_page, p, search_build(&p->search, unit));
TASK_UNIT(read_rows, struct search_page, p, p->read(unit, p->search.workspace, p->text));

static const TASK_STATES(struct search_page) page_states[] = {
	[PAGE_NEW] = {"new", take_start},
	[PAGE_PROBING] = {"probing", take_probed, probe},
	[PAGE_WALKING] = {"walking", take_walked, walk},
	[PAGE_SHOWING] = {"showing", take_shown, read_rows},
	[PAGE_DONE] = {"done"},
};

TASK_KIND(page_kind, "search", struct search_page, page_states, .op = 0);

void search_page_init(struct search_page *page)
{
	page->ids = NULL;
	page->ids_n = 0;
	page->more = false;
	page->slices = 0;
	page->unknown = NULL;
	task_init(&page->task, &page_kind, /* topic= */ 0);
}

size_t search_page_row(const struct search_page *page, const struct db_rows *rows, size_t column, size_t n)
{
	size_t i = 0;

	while (i < rows->n && db_cell(rows, i, column)->i != page->ids[n])
		i++;
	return i;
}
