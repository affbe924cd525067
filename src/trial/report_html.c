/*
 * What a trial came to, as one page (trial.h). Whatever comes from files is escaped, and stands in elements and attributes, never in
 * the script: its bytes are always these, and their hash is what the policy of the page allows.
 */
#include "base/base64.h"
#include "base/hash.h"
#include "model/graph_picture.h"
#include "model/graph_svg.h"
#include "trial/trial.h"

static const char style[] =
	"body{font:14px/1.45 system-ui,sans-serif;margin:2em;color:#1c2430;background:#fff}h1{font-size:1.3em}"
	"h2{font-size:1.05em;margin-top:2em}table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;"
	"padding:.25em .8em;border-bottom:1px solid #e1e5ec}th{position:sticky;top:0;background:#fff}"
	"#story{display:block;overflow-x:auto}#story td{min-width:11em}#story td:first-child{min-width:2em}small,.place{color:#667}.after{opacity:.2}.now{background:#fff3d6}"
	".never td{background:#fdeaea}svg{max-width:100%;height:auto}p{white-space:pre-line}"
	"@media(max-width:900px){#story td:empty,#story th{display:none}#story tr{display:flex}}";

static const char script[] =
	"(()=>{const $=q=>[...document.querySelectorAll(q)],r=$('tr.event'),l=$('tr.effect');let i=0;"
	"const show=n=>{i=Math.max(0,Math.min(r.length-1,n));r.forEach((e,k)=>{e.classList.toggle('after',k>i);"
	"e.classList.toggle('now',k==i)});l.forEach(e=>e.classList.toggle('after',e.dataset.event>i+1));"
	"document.getElementById('at').textContent=i+1+' / '+r.length;r[i].scrollIntoView({block:'nearest'})};"
	"$('tr.never').forEach(t=>$('svg text').forEach(x=>{if(x.textContent==t.dataset.step)"
	"x.setAttribute('fill','#c00')}));if(!r.length)return;addEventListener('keydown',e=>{"
	"const d={ArrowDown:1,ArrowRight:1,j:1,ArrowUp:-1,ArrowLeft:-1,k:-1,Home:-1e9,End:1e9}[e.key];"
	"if(d){show(i+d);e.preventDefault()}});show(0)})()";

static void put(struct strbuf *out, const char *text)
{
	svg_escape(out, slice_str(text));
}

static void put_place(struct strbuf *out, const char *file, size_t line)
{
	if (!file || !line)
		return;
	strbuf_add_str(out, " <span class=\"place\">");
	put(out, file);
	strbuf_addf(out, ":%zu</span>", line);
}

static void put_head(struct strbuf *out)
{
	uint8_t digest[SHA256_BYTES];

	sha256(script, sizeof script - 1, digest);
	strbuf_add_str(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\""
			    "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
			    "script-src 'sha256-");
	base64_append(slice_of((const char *)digest, sizeof digest), out);
	strbuf_addf(out, "'\"><title>hapax explore</title><style>%s</style></head><body>\n", style);
}

static void put_event(const struct trial_event *e, size_t n, struct strbuf *out)
{
	strbuf_addf(out, "<tr class=\"event\"><td>%zu</td>", n);
	for (enum trial_lane lane = 0; lane < LANES_N; lane++) {
		strbuf_add_str(out, "<td>");
		if (lane == e->lane) {
			strbuf_add_str(out, "<b>");
			put(out, e->who);
			strbuf_add_str(out, "</b> ");
			put(out, e->what);
			put_place(out, e->file, e->line);
		}
		strbuf_add_str(out, "</td>");
	}
	strbuf_add_str(out, "</tr>\n");
}

static void put_ledger(const struct trial_story *s, struct strbuf *out)
{
	strbuf_add_str(out, "<h2>Ledger</h2><table id=\"ledger\"><tr><th>at</th><th>happened</th><th>step</th></tr>\n");
	for (size_t i = 0; i < s->happened_n; i++) {
		const struct trial_happened *h = &s->happened[i];

		strbuf_addf(out, "<tr class=\"effect\" data-event=\"%zu\"><td>%zu</td><td>", h->event, h->event);
		put(out, h->action);
		strbuf_add_str(out, "</td><td>");
		put(out, h->step);
		strbuf_add_str(out, "</td></tr>\n");
	}
	strbuf_add_str(out, "</table>\n");
}

static void put_suggestions(const struct trial_report *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->suggestions_n; i++) {
		const struct trial_suggestion *s = &r->suggestions[i];

		strbuf_add_str(out, "<p>Tried: <b>");
		put(out, s->change);
		strbuf_add_str(out, "</b>, ");
		put(out, s->where);
		put_place(out, s->file, s->line);
		strbuf_addf(out, ": explored again, 0 found, %s%s", s->complete ? "complete" : "bounded",
			    s->provided ? "; provided that " : "");
		put(out, s->provided ? s->provided : "");
		strbuf_add_str(out, "</p>\n");
	}
}

static void put_story(const struct trial_report *r, struct strbuf *out)
{
	const struct trial_story *s = r->story;

	strbuf_addf(out, "<h1>Found: %s: ", trial_rule_name(s->rule));
	put(out, s->broken);
	strbuf_add_str(out, "</h1><p>");
	put(out, s->field ? s->field : "");
	strbuf_add_str(out, s->field ? ": " : "");
	put(out, s->why ? s->why : "");
	put_place(out, s->file, s->line);
	strbuf_add_str(out, "</p>\n");
	put_suggestions(r, out);
	strbuf_add_str(out, "<h2>Story, ");
	put(out, s->scenario);
	strbuf_add_str(
		out,
		" <small>by the arrow keys: <span id=\"at\"></span></small></h2>\n<table id=\"story\"><tr><th></th>"
		"<th>callers</th><th>nodes</th><th>store</th><th>services</th><th>time</th></tr>\n");
	for (size_t i = 0; i < s->events_n; i++)
		put_event(&s->events[i], i + 1, out);
	strbuf_add_str(out, "</table>\n");
	put_ledger(s, out);
}

static void put_bits(struct strbuf *out, unsigned bits)
{
	strbuf_add_str(out, "<td>");
	for (int may = 0; may < MAYS_N; may++)
		if (bits & 1u << may)
			strbuf_addf(out, "%s ", trial_may_name(may));
	strbuf_add_str(out, "</td>");
}

static void put_covered(const struct trial_report *r, struct strbuf *out)
{
	strbuf_add_str(out, "<h2>Covered</h2><table id=\"covered\"><tr><th>workflow</th><th>step</th><th>calls</th>"
			    "<th>seen</th><th>not seen</th></tr>\n");
	for (size_t i = 0; i < r->covered_n; i++) {
		const struct trial_covered *c = &r->covered[i];
		const char *const cells[] = {c->workflow, c->step, c->what};

		strbuf_addf(out, "<tr class=\"%s\" data-step=\"", c->reached ? "reached" : "never");
		put(out, c->step);
		strbuf_add_str(out, "\">");
		for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
			strbuf_add_str(out, "<td>");
			put(out, cells[k]);
			strbuf_add_str(out, "</td>");
		}
		put_bits(out, c->seen);
		put_bits(out, c->may & ~c->seen);
		strbuf_add_str(out, "</tr>\n");
	}
	strbuf_add_str(out, "</table>\n");
}

/* What cannot be drawn is left out: the table says it all. */
static void put_pictures(const struct definition_set *set, struct strbuf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		LOCAL_STRBUF(svg, GRAPH_BYTES_MAX);
		struct hx_error err;
		const char *from;

		if (graph_picture(set->items[i], &svg, &err) || !(from = strstr(svg.p, "<svg")))
			continue;
		strbuf_add_str(out, "<figure>");
		strbuf_add_str(out, from);
		strbuf_add_str(out, "</figure>\n");
	}
}

void trial_report_html(const struct trial_report *r, const struct trial_options *o, const struct definition_set *set,
		       struct strbuf *out)
{
	LOCAL_STRBUF(words, 1u << 20);

	put_head(out);
	if (r->story)
		put_story(r, out);
	else
		strbuf_addf(out, "<h1>%s: no rule was broken</h1>\n", r->complete ? "Complete" : "Bounded");
	trial_verdict_words(r, o, &words);
	strbuf_add_str(out, "<p>");
	put(out, words.p);
	strbuf_add_str(out, "</p>\n");
	put_covered(r, out);
	for (size_t i = 0; i < r->left_out_n; i++) {
		strbuf_add_str(out, "<p>Left out: ");
		put(out, r->left_out[i]);
		strbuf_add_str(out, "</p>\n");
	}
	put_pictures(set, out);
	strbuf_addf(out, "<script>%s</script></body></html>\n", script);
}
