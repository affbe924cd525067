// How the server does: the last hour, as this node has kept it, the nodes on the store, and what is due.
import { useEffect, useState } from "./vendor/hooks.js";
import { grouped, html, local, span } from "./lib.js";
import { KINDS } from "./inbox.js";
import { Age, Facts, Failure, Page, Status, Text, Time, live, useLoad } from "./ui.js";

const WIDTH = 600, HEIGHT = 110, SHORTEST = 120e3;

const took = (us) => (us >= 1e6 ? `${(us / 1e6).toFixed(1)} s` : us >= 1000 ? `${(us / 1000).toFixed(us >= 1e4 ? 0 : 1)} ms` : `${Math.round(us)} µs`);
const UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const bytes = (n) => {
	const [name, unit] = UNITS.find(([, u]) => n >= u) || UNITS[2];
	return `${n >= 10 * unit ? Math.round(n / unit) : (n / unit).toFixed(n ? 1 : 0)} ${name}`;
};
// How large the store is, and by how much it has grown since the first row.
function growth(rows) {
	const known = rows.filter((r) => r.storeBytes);
	if (!known.length) return null;
	const first = known[0], last = known[known.length - 1], by = last.storeBytes - first.storeBytes, ms = last.at - first.at;
	return html`${bytes(last.storeBytes)}${ms >= 60e3 && html` <span class="quiet">${by < 0 ? "−" : "+"}${bytes(Math.abs(by))} in ${span(ms)}</span>`}`;
}
const number = (n) => (n >= 100 || Number.isInteger(n) ? grouped(Math.round(n)) : n.toFixed(1));

// 1, 2 or 5 and zeros: the next one that is not smaller.
function ceiling(max) {
	if (max <= 0) return 1;
	const unit = 10 ** Math.floor(Math.log10(max));
	return [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= max);
}

// lines: [name, row => number, tone]. All that was kept, which is the last hour at most; at least two minutes. Where one points, the
// numbers are those of that moment.
export function Chart({ title, rows, lines, words = number, shortest = SHORTEST, ends }) {
	const [at, point] = useState(null);
	const end = rows.length ? rows[rows.length - 1].at : 0, width = Math.max(shortest, end - rows[0].at), begin = end - width;
	const top = ceiling(Math.max(0, ...lines.flatMap(([, of]) => rows.map(of))));
	const x = (row) => (((row.at - begin) / width) * WIDTH).toFixed(1);
	const place = (row, value) => `${x(row)},${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`;
	const shown = rows.find((row) => row.at === at) || rows[rows.length - 1];
	const look = (event) => {
		const box = event.currentTarget.getBoundingClientRect(), wanted = begin + ((event.clientX - box.left) / box.width) * width;
		point(rows.reduce((best, row) => (Math.abs(row.at - wanted) < Math.abs(best.at - wanted) ? row : best)).at);
	};
	const drawn = lines.map(([name, of, tone]) => [name, "t-" + tone, rows.map((row) => place(row, of(row))).join(" ")]);
	return html`<figure class="chart"><figcaption><strong>${title}</strong>${lines.map(([name, of, tone]) => html`<span key=${name} class=${"key t-" + tone}><i></i>${name} <b>${words(of(shown))}</b></span>`)}</figcaption>
		<div class="plot"><span>${words(top)}</span><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${`${title}, at the end: ${lines.map(([name, of]) => `${name} ${words(of(rows[rows.length - 1]))}`).join(", ")}`} onPointerMove=${look} onPointerLeave=${() => point(null)}>
			${[0, 0.5, 1].map((y) => html`<line key=${y} class="grid" x1="0" x2=${WIDTH} y1=${HEIGHT * y} y2=${HEIGHT * y} />`)}
			<polygon class=${"fill " + drawn[0][1]} points=${`${x(rows[0])},${HEIGHT} ${drawn[0][2]} ${x(rows[rows.length - 1])},${HEIGHT}`} />
			${drawn.map(([name, tone, points]) => html`<polyline key=${name} class=${tone} points=${points} />`)}
			${at !== null && html`<line class="at" x1=${x(shown)} x2=${x(shown)} y1="0" y2=${HEIGHT} />`}
		</svg></div>
		<div class="scale"><span>${ends ? ends[0] : `${span(width)} ago`}</span>${at !== null && html`<span>${local(new Date(shown.at).toISOString())}</span>`}<span>${ends ? ends[1] : "now"}</span></div></figure>`;
}

function Charts({ rows, every }) {
	const rate = (name) => (row) => row[name] / (every / 1000);
	return html`<div class="charts">
		<${Chart} title="A second" rows=${rows} lines=${[["requests", rate("requests"), "live"], ["transitions", rate("transitions"), "good"], ["errors", rate("errors"), "bad"]]} />
		<${Chart} title="Requests took" rows=${rows} words=${took} lines=${[["half", (r) => r.requestP50, "live"], ["99 of 100", (r) => r.requestP99, "warn"]]} />
		<${Chart} title="Commits took" rows=${rows} words=${took} lines=${[["half", (r) => r.commitP50, "live"], ["99 of 100", (r) => r.commitP99, "warn"]]} />
		<${Chart} title="Calls of actions took" rows=${rows} words=${took} lines=${[["half", (r) => r.actionP50, "live"], ["99 of 100", (r) => r.actionP99, "warn"]]} />
		<${Chart} title="Units in a commit" rows=${rows} lines=${[["on average", (r) => (r.commits ? r.units / r.commits : 0), "live"]]} />
		<${Chart} title="Under way" rows=${rows} lines=${[["waiting in lanes", (r) => r.laneWaiting, "warn"], ["calls", (r) => r.actionsRunning, "live"], ["connections", (r) => r.connections, "calm"]]} />
		<${Chart} title="Store" rows=${rows.some((r) => r.storeBytes) ? rows.filter((r) => r.storeBytes) : rows} words=${bytes} lines=${[["on disk", (r) => r.storeBytes, "good"]]} />
		<${Chart} title="Memory" rows=${rows} words=${bytes} lines=${[["resident", (r) => r.residentBytes, "live"]]} />
	</div>`;
}

function Nodes({ of }) {
	return html`<section><h2>Nodes</h2><div class="scroll"><table class="list"><thead><tr><th>node</th><th>status</th><th class="n">leases</th><th>up for</th><th>its own lease until</th></tr></thead>
		<tbody>${of.map((n, i) => html`<tr key=${i}><td><${Text} of=${n.name} /></td><td><${Status} of=${n.alive ? "RUNNING" : "gone"} /></td><td class="n">${grouped(n.leases)}</td><td>${n.alive && html`<${Age} since=${n.startedAt} />`}</td><td>${Date.parse(n.until) > Date.now() ? html`<${Time} of=${n.until} />` : html`<span class="none">–</span>`}</td></tr>`)}</tbody></table></div></section>`;
}

// The oldest first: what waits longest is what is wrong.
function Due({ title, of, label, to }) {
	const rows = of.filter((d) => d.n > 0).sort((a, b) => b.ageMs - a.ageMs);
	return html`<section><h2>${title}</h2>${rows.length ? html`<div class="scroll"><table class="list"><thead><tr><th>kind</th><th>${label}</th><th class="n">how many</th><th class="n">the oldest for</th></tr></thead>
		<tbody>${rows.map((d) => html`<tr key=${d.kind + d[label]}><td>${to ? html`<a href=${to(d)}>${KINDS[d.kind] || d.kind}</a>` : d.kind}</td><td class="cut"><${Text} of=${d[label]} /></td><td class="n">${grouped(d.n)}${d.n >= 10000 ? "+" : ""}</td><td class="n">${span(d.ageMs)}</td></tr>`)}</tbody></table></div>` : html`<p class="quiet">Nothing.</p>`}</section>`;
}

export function Health() {
	const { data, error, reload } = useLoad("vitals");
	useEffect(() => {
		const timer = setInterval(() => live.paused || document.hidden || reload(), data?.everyMs || 10000);
		return () => clearInterval(timer);
	}, [data?.everyMs]);
	if (!data) return html`<${Page} title="Health"><${Failure} error=${error} /></${Page}>`;
	const rows = data.rows.map((row) => Object.fromEntries(data.columns.map((name, i) => [name, Number(row[i])])));
	return html`<${Page} title="Health" aside=${html`<span class="quiet"><${Text} of=${data.node} />, hapax ${data.version}</span>`}>
		<${Failure} error=${error} />
		${rows.length ? html`<${Charts} rows=${rows} every=${data.everyMs} />` : html`<p class="quiet">The first numbers are there ${data.everyMs / 1000} seconds after the start.</p>`}
		<${Nodes} of=${data.nodes} />
		<${Due} title="Due, and not yet taken" of=${data.due} label="queue" />
		<${Due} title="Waits for a person" of=${data.attention} label="workflow" to=${(d) => "#/?kind=" + d.kind} />
		${!data.counted && html`<p class="quiet">What is due is being counted.</p>`}
		<${Facts} of=${[["as of", html`<${Time} of=${data.at} />`], ["store", growth(rows)], ["kept", `${rows.length} of 360 rows, ${data.everyMs / 1000} s each`]]} />
	</${Page}>`;
}
