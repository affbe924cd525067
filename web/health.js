// How the server does: the last hour, as this node has kept it, the nodes on the store, and what is due.
import { useEffect } from "./vendor/hooks.js";
import { Chart } from "./chart.js";
import { grouped, html, span } from "./lib.js";
import { KINDS } from "./inbox.js";
import { Age, Facts, Failure, Page, Rows, Status, Text, Time, live, useLoad } from "./ui.js";

const took = (us) => (us >= 1e6 ? `${(us / 1e6).toFixed(1)} s` : us >= 1000 ? `${(us / 1000).toFixed(us >= 1e4 ? 0 : 1)} ms` : `${Math.round(us)} µs`);
const UNITS = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const bytes = (n) => {
	const [name, unit] = UNITS.find(([, u]) => n >= u) || UNITS[2];
	return `${n >= 10 * unit ? Math.round(n / unit) : (n / unit).toFixed(n ? 1 : 0)} ${name}`;
};
const power = (n) => 2 ** Math.ceil(Math.log2(n || 1)); // what bytes are measured by
// How large the store is, and by how much it has grown since the first row.
function growth(rows) {
	const known = rows.filter((r) => r.storeBytes);
	if (!known.length) return null;
	const first = known[0], last = known[known.length - 1], by = last.storeBytes - first.storeBytes, ms = last.at - first.at;
	return html`${bytes(last.storeBytes)}${ms >= 60e3 && html` <span class="quiet">${by < 0 ? "−" : "+"}${bytes(Math.abs(by))} in ${span(ms)}</span>`}`;
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
		<${Chart} title="Store" rows=${rows.some((r) => r.storeBytes) ? rows.filter((r) => r.storeBytes) : rows} words=${bytes} top=${power} lines=${[["on disk", (r) => r.storeBytes, "good"]]} />
		<${Chart} title="Memory" rows=${rows} words=${bytes} top=${power} lines=${[["resident", (r) => r.residentBytes, "live"]]} />
	</div>`;
}

const NODE = [
	{ name: "node", of: (n) => html`<${Text} of=${n.name} />` },
	{ name: "status", of: (n) => html`<${Status} of=${n.alive ? "RUNNING" : "gone"} />` },
	{ name: "leases", class: "n", of: (n) => grouped(n.leases) },
	{ name: "up for", of: (n) => n.alive && html`<${Age} since=${n.startedAt} />` },
	{ name: "its own lease until", of: (n) => (Date.parse(n.until) > Date.now() ? html`<${Time} of=${n.until} />` : html`<span class="none">–</span>`) },
];

const WORKER = [
	{ name: "worker", class: "cut", of: (w) => html`<${Text} of=${w.name} />` },
	{ name: "at", class: "cut", of: (w) => html`<${Text} of=${w.of} />` },
	{ name: "leases", class: "n", of: (w) => grouped(w.leases) },
	{ name: "the oldest for", class: "n", of: (w) => html`<${Age} since=${w.since} />` },
];

// The oldest first: what waits longest is what is wrong.
function Due({ title, of, label, to, counted }) {
	const rows = of.filter((d) => d.n > 0).sort((a, b) => b.ageMs - a.ageMs);
	const columns = [
		{ name: "kind", of: (d) => (to ? html`<a href=${to(d)}>${KINDS[d.kind] || d.kind}</a>` : d.kind) },
		{ name: label, class: "cut", of: (d) => html`<${Text} of=${d[label]} />` },
		{ name: "how many", class: "n", of: (d) => `${grouped(d.n)}${d.n >= 10000 ? "+" : ""}` },
		{ name: "the oldest for", class: "n", of: (d) => span(d.ageMs) },
	];
	return html`<section><h2>${title}</h2>${rows.length ? html`<${Rows} rows=${rows} columns=${columns} key_of=${(d) => d.kind + d[label]} />` : html`<p class="quiet">${counted ? "Nothing." : "It is being counted."}</p>`}</section>`;
}

export function Health() {
	const { data, error, reload } = useLoad("vitals");
	const every = !data ? 10000 : data.counted ? data.everyMs : 1000; // asked for the first time, it begins to count
	useEffect(() => {
		const timer = setInterval(() => live.paused || document.hidden || reload(), every);
		return () => clearInterval(timer);
	}, [every]);
	if (!data) return html`<${Page} title="Health"><${Failure} error=${error} /></${Page}>`;
	const rows = data.rows.map((row) => Object.fromEntries(data.columns.map((name, i) => [name, Number(row[i])])));
	return html`<${Page} title="Health" aside=${html`<span class="quiet"><${Text} of=${data.node} />, hapax ${data.version}</span>`}>
		<${Failure} error=${error} />
		${rows.length ? html`<${Charts} rows=${rows} every=${data.everyMs} />` : html`<p class="quiet">The first numbers are there ${data.everyMs / 1000} seconds after the start.</p>`}
		<section><h2>Nodes</h2><${Rows} rows=${data.nodes} columns=${NODE} key_of=${(n) => n.name + n.startedAt} /></section>
		<section><h2>Workers</h2>${data.workers.length ? html`<${Rows} rows=${data.workers} columns=${WORKER} key_of=${(w) => JSON.stringify([w.name, w.of])} />` : html`<p class="quiet">None has leased a job or a turn. Who polls for functions is told <a href="#/functions">there</a>.</p>`}</section>
		<${Due} title="Due, and not yet taken" of=${data.due} counted=${data.counted} label="queue" />
		<${Due} title="Waits for a person" of=${data.attention} counted=${data.counted} label="workflow" to=${(d) => "#/?kind=" + d.kind} />
		<${Facts} of=${[["as of", html`<${Time} of=${data.at} />`], ["store", growth(rows)], ["kept", `${rows.length} of 360 rows, ${data.everyMs / 1000} s each`]]} />
	</${Page}>`;
}
