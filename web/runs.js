// Runs: the list, and one of them step by step.
import { useState } from "./vendor/hooks.js";
import * as act from "./actions.js";
import { command, here, html, link, query, span, where } from "./lib.js";
import { Sent } from "./sent.js";
import { Actions, Age, Choice, Command, Copy, Counts, Data, Difference, Facts, Failure, History, Id, Json, List, Long, Page, Status, Text, Time, ToAll, Typed, Why, tone_of, useLoad } from "./ui.js";

export const RUN_STATUSES = ["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLING", "CANCELLED"];

export const run_columns = [
	{ name: "run", of: (r) => r.id },
	{ name: "workflow", of: (r) => html`<${Text} of=${r.definitionId} />` },
	{ name: "status", of: (r) => html`<${Status} of=${r.status} />` },
	{ name: "step", of: (r) => html`<${Text} of=${r.currentStep ?? ""} />${r.error?.code === "OUTCOME_UNKNOWN" && !r.completedAt && html` <${Status} of="UNKNOWN" />`}` },
	{ name: "key", class: "cut", of: (r) => html`<${Text} of=${r.idempotencyKey ?? ""} />` },
	{ name: "created", of: (r) => html`<${Time} of=${r.createdAt} />` },
	{ name: "took", class: "n", of: (r) => html`<${Age} since=${r.createdAt} until=${r.completedAt} />` },
];

// How many there are of each: exact, and summed up by the store all along.
const COUNTED = 500;
function RunCounts({ workflow, status, unknown }) {
	const { data } = useLoad("run-counts" + query({ definitionId: workflow, limit: COUNTED }));
	const sums = RUN_STATUSES.map((name) => [name, (data?.items || []).reduce((n, r) => n + BigInt(String(r.counts[name])), 0n)]);
	const doubt = html`<a class="doubt" href=${here({ status: "", cursor: "", unknown: unknown ? "" : "true" })} aria-current=${unknown ? "true" : undefined} title="a step of theirs is unknown, and held for a person"><span class="status bad"><i></i>in doubt</span></a>`;
	return html`<${Counts} of=${sums} status=${status}>${doubt}${data?.cursor && html`<span class="quiet">of ${COUNTED} workflows</span>`}</${Counts}>`;
}

export function Runs() {
	const { status, definitionId, unknown, parent, where: condition } = where().query;
	return html`<${Page} title="Runs" aside=${html`<${Choice} name="status" label="Status" words=${RUN_STATUSES} value=${status} /><${Typed} name="definitionId" label="Workflow" value=${definitionId} hint="any" /><${Typed} name="where" label="Where" value=${condition} hint='total > 100 and customer == "c-1"' wide />`}>
		${!condition && !parent && html`<${RunCounts} workflow=${definitionId} status=${status} unknown=${unknown} />`}
		${!unknown && html`<${ToAll} of=${{ status, workflow: definitionId, parent }} condition=${condition} />`}
		<${List} list="workflow-runs" name="runs" parameters=${{ status, definitionId, unknown, parent, where: condition }} columns=${run_columns} to=${(r) => link`runs/${r.id}`}
			note="the newest first"
			empty=${html`<p class="big">No run yet.</p><p>Start one, with a key so that it is one:</p><${Command} of="hapax run start WORKFLOW --key order-1 --input '{}'" />`} />
	</${Page}>`;
}

// The middle part of traceparent: what traces are found by.
function Trace({ run }) {
	const { data } = useLoad(`workflow-runs/${encodeURIComponent(run)}/sent`);
	const id = data?.trace?.split("-")[1];
	return id ? html`<code><${Text} of=${id} /></code><${Copy} text=${() => id} />` : html`<span class="none">–</span>`;
}

// ---- the waterfall ---------------------------------------------------------------------------------------------
// Time from left to right. A stretch that is longer than three times all shorter ones together is drawn shorter, and says so.

function axis(steps, from, to) {
	const marks = [...new Set([from, to, ...steps.flatMap((s) => [s.startedAt, s.completedAt]).filter(Boolean).map(Date.parse)])].filter((t) => t >= from && t <= to).sort((a, b) => a - b);
	const stretches = marks.slice(1).map((end, i) => ({ start: marks[i], end, width: end - marks[i], cut: false }));
	let sum = 0;
	for (const s of [...stretches].sort((a, b) => a.width - b.width)) {
		if (sum > 0 && s.width > 3 * sum && s.width > 1000) {
			s.width = 3 * sum;
			s.cut = true;
		}
		sum += s.width;
	}
	const total = stretches.reduce((n, s) => n + s.width, 0) || 1;
	let left = 0;
	for (const s of stretches) {
		s.left = (100 * left) / total;
		left += s.width;
		s.share = (100 * s.width) / total;
	}
	const place = (time) => {
		const s = stretches.find((x) => time >= x.start && time <= x.end);
		return s ? s.left + (s.end > s.start ? ((time - s.start) / (s.end - s.start)) * s.share : 0) : time <= from ? 0 : 100;
	};
	return { place, cuts: stretches.filter((s) => s.cut) };
}

// One that has failed has ended when the run did.
const end_of = (run, step) => step.completedAt || (step.status === "FAILED" ? run.completedAt || run.updatedAt : null);

function Bar({ run, step, place, to }) {
	if (!step.startedAt) return null;
	const end = end_of(run, step);
	const left = place(Date.parse(step.startedAt)), right = place(end ? Date.parse(end) : to);
	return html`<i class="bar ${tone_of(step.status)}" style=${{ left: `${left}%`, width: `${Math.max(right - left, 0.6)}%` }}></i>`;
}

// What each attempt said that came to nothing. What it says as the one before it did is quiet: what differs is what is read.
function Attempts({ of, step }) {
	if (of.length < 2 && !(of.length && step.status === "COMPLETED")) return null;
	return html`<table class="list attempts"><thead><tr><th class="n">attempt</th><th>ended</th><th>what it said</th></tr></thead><tbody>${of.map((r, i) => html`<tr key=${r.seq}><td class="n">${i + 1}</td><td><${Time} of=${r.time} /></td><td class="wrap"><${Differs} of=${r.reason} from=${of[i - 1]?.reason} /></td></tr>`)}
		${step.status === "COMPLETED" && html`<tr><td class="n">${of.length + 1}</td><td><${Time} of=${step.completedAt} /></td><td>done</td></tr>`}</tbody></table>`;
}
const SAID_MAX = 500;
function Differs({ of, from }) {
	if (from === undefined) return html`<${Text} of=${of} />`;
	if (of === from) return html`<span class="none">the same</span>`;
	const most = Math.min(of.length, from.length, SAID_MAX);
	let head = 0, tail = 0;
	while (head < most && of[head] === from[head]) head++;
	while (tail < most - head && of[of.length - 1 - tail] === from[from.length - 1 - tail]) tail++;
	return html`<span class="quiet"><${Text} of=${of.slice(0, head)} /></span><mark><${Text} of=${of.slice(head, of.length - tail)} /></mark><span class="quiet"><${Text} of=${of.slice(of.length - tail)} /></span>`;
}

function Step({ run, step, place, to, tries }) {
	const [open, set] = useState(step.status === "UNKNOWN" || step.status === "FAILED");
	const more = step.output !== null || step.error || step.status === "UNKNOWN" || tries.length > 0;
	const waits_for_approval = run.status === "WAITING" && step.status === "WAITING" && step.name === run.currentStep;
	return html`<div class="step ${step.status === "PENDING" || step.status === "SKIPPED" ? "dim" : ""}">
		<button class="step-line" aria-expanded=${open} disabled=${!more && !waits_for_approval} onClick=${() => set(!open)}>
			<span class="step-name"><${Text} of=${step.name} />${step.kind && step.kind !== "step" && html` <small>${step.kind}</small>`}</span>
			<${Status} of=${step.status} />
			<span class="track"><${Bar} run=${run} step=${step} place=${place} to=${to} /></span>
			<span class="took">${step.startedAt && html`<${Age} since=${step.startedAt} until=${end_of(run, step)} />`}${step.attempt > 1 && html`<span class="tries" title="attempts">×${String(step.attempt)}</span>`}${step.compensatedAt && html`<span class="tries" title=${step.compensatedAt}>undone</span>`}</span>
		</button>
		${open && html`<div class="step-body">
			${step.startedAt && step.status !== "UNKNOWN" && html`<p class="quiet">${step.attempt > 1 ? `attempt ${step.attempt}, ` : ""}began <${Time} of=${step.startedAt} />${step.completedAt && html`, ended <${Time} of=${step.completedAt} />`}</p>`}
			<${Attempts} of=${tries} step=${step} />
			${step.error && html`<div class="note bad"><strong><${Text} of=${step.error.code || "error"} /></strong> <${Long} of=${step.error.message ?? ""} /></div>`}
			${step.output !== null && html`<div class="json"><${Json} name="output" of=${step.output} /></div>`}
			${step.status === "UNKNOWN" && html`<${Sent} of=${`workflow-runs/${run.id}`} id=${run.id} step=${step.name} asks=${["run", "probe", run.id, step.name]} /><${Actions} of=${act.resolve_step(run, step.name)} />`}
		</div>`}
	</div>`;
}

// Each time that a node, or a worker of a function, took the run it got a higher fence: what an older one still writes is refused.
function leases(rows) {
	const taken = [];
	let fence = 0, lapsed = false; // of a function that is said before the next one takes it
	for (const r of rows) {
		lapsed ||= r.reason === "the lease before was over";
		if (Number(r.fence) <= fence) continue;
		taken.push({ fence: String(r.fence), at: r.time, by: r.worker || r.node, node: r.node, again: lapsed });
		fence = Number(r.fence);
		lapsed = false;
	}
	return taken;
}

function Leases({ of, place }) {
	const again = of.filter((l) => l.again).length, by = [...new Set(of.map((l) => l.by))];
	return html`<div class="step leases"><div class="step-line"><span class="step-name">leases</span><span class="quiet" title=${by.join(", ")}>${of.length === 1 ? "taken once" : `taken ${of.length} times`}${by.length > 1 && `, by ${by.length}`}${again > 0 && html`, <strong>${again} taken over</strong>`}</span>
		<span class="track">${of.map((l) => html`<i key=${l.fence} class="taken ${l.again ? "again" : ""}" style=${{ left: `${place(Date.parse(l.at))}%` }} title=${`fence ${l.fence}: ${l.again ? "taken over" : "taken"} by ${l.by}${l.by === l.node ? "" : ` through ${l.node}`}, ${l.at}`}></i>`)}</span>
		<span class="took">fence ${of[of.length - 1].fence}, <${Text} of=${of[of.length - 1].by} /></span></div></div>`;
}

// The step is at a worker: its job has the queue, and who has leased it.
function AtWorker({ job }) {
	const { data: j } = useLoad(`jobs/${job}`);
	return html`<div class="step leases"><div class="step-line"><span class="step-name">at a worker</span><${Id} of=${job} label="its job" /><span></span>
		<span class="took">${j && (j.owner ? html`leased by <${Text} of=${j.owner} />` : html`${j.status === "RUNNING" ? "running" : "waits"} in <${Text} of=${j.queue} />`)}</span></div></div>`;
}

function Waterfall({ run }) {
	const to = run.completedAt ? Date.parse(run.completedAt) : Date.now();
	const { place, cuts } = axis(run.steps, Date.parse(run.createdAt), to);
	const { data } = useLoad(`history/${run.id}?limit=200`);
	const taken = leases(data?.items || []);
	const said = (step) => (data?.items || []).filter((r) => r.step === step && r.reason && !r.by); // who decided has said why: that is no attempt
	const queued = run.startedAt ? Date.parse(run.startedAt) - Date.parse(run.createdAt) : 0;
	return html`<section><h2>Steps</h2><div class="waterfall">
		${queued > 0 && html`<div class="step dim queued"><div class="step-line"><span class="step-name">queued</span><span></span><span class="track"><i class="bar waits" style=${{ left: "0%", width: `${Math.max(place(Date.parse(run.startedAt)), 0.6)}%` }}></i></span><span class="took">${span(queued)}</span></div></div>`}
		${run.steps.map((step) => html`<${Step} key=${step.name} run=${run} step=${step} place=${place} to=${to} tries=${said(step.name)} />`)}
		${run.job && html`<${AtWorker} job=${run.job} />`}
		${taken.length > 0 && html`<${Leases} of=${taken} place=${place} />`}
		${cuts.length > 0 && html`<div class="step leases"><div class="step-line"><span class="step-name">drawn shorter</span><span></span><span class="track cuts">${cuts.map((c) => html`<i key=${c.start} style=${{ left: `${c.left}%`, width: `${c.share}%` }} title="a stretch in which nothing else begins or ends"><span>${span(c.end - c.start)}</span></i>`)}</span><span class="took"></span></div></div>`}
	</div></section>`;
}

const in_order = (runs) => [...runs].reverse(); // as they were begun: a list has the newest first

// One of the tree: its own children are asked for when it is opened.
function Child({ run: r, depth }) {
	const [open, set] = useState(false);
	const { data } = useLoad(open ? "workflow-runs?limit=100&parent=" + r.id : null);
	return html`<tr data-to=${link`runs/${r.id}`} tabindex="-1"><td class="tree" style=${{ paddingLeft: `${depth * 20}px` }}><button class="j-fold" aria-expanded=${open} aria-label=${`children of ${r.id}`} onClick=${() => set(!open)}></button><${Id} of=${r.id} /></td><td><${Text} of=${r.parent?.step ?? ""} /></td><td class="n">${r.parent ? String(r.parent.n) : ""}</td><td><${Text} of=${r.definitionId} /></td><td><${Status} of=${r.status} /></td><td><${Text} of=${r.currentStep ?? ""} /></td><td class="n"><${Age} since=${r.createdAt} until=${r.completedAt} /></td></tr>
		${open && data && !data.items.length && html`<tr><td class="quiet" style=${{ paddingLeft: `${depth * 20 + 36}px` }} colspan="7">none</td></tr>`}
		${open && data && in_order(data.items).map((c) => html`<${Child} key=${c.id} run=${c} depth=${depth + 1} />`)}`;
}

function Children({ run }) {
	const { data } = useLoad("workflow-runs?limit=100&parent=" + run.id);
	if (!data?.items.length) return null;
	return html`<section><h2>Children</h2><div class="scroll"><table class="list">
		<thead><tr><th>run</th><th>of step</th><th class="n">n</th><th>workflow</th><th>status</th><th>stands at</th><th class="n">took</th></tr></thead>
		<tbody>${in_order(data.items).map((r) => html`<${Child} key=${r.id} run=${r} depth=${0} />`)}</tbody>
	</table></div>${data.cursor && html`<p><a href=${`#/runs?parent=${run.id}`}>All of them</a></p>`}</section>`;
}

// One that goes on in the place of another: what is not as it was there.
const compared = (run) => ({ input: run.input, steps: run.steps.map(({ name, status, attempt, output, error }) => ({ name, status, attempt, output, error })), output: run.output });
function Before({ run }) {
	const { data } = useLoad(`workflow-runs/${run.restartOf}`);
	return data ? html`<section><h2>What differs from <${Id} of=${run.restartOf} /></h2><${Difference} before=${compared(data)} after=${compared(run)} names=${["there", "here"]} /></section>` : null;
}

function verbs_of(run) {
	const ended = ["COMPLETED", "CANCELLED"].includes(run.status), failed = run.status === "FAILED";
	if (run.restartedBy) return [];
	return [
		failed && act.retry_run(run),
		run.status === "CANCELLING" && run.error && act.retry_undo(run),
		run.status === "PAUSED" && act.resume_run(run),
		["PENDING", "RUNNING", "WAITING"].includes(run.status) && act.pause_run(run),
		!ended && !failed && run.status !== "CANCELLING" && act.signal_run(run),
		(failed || run.status === "COMPLETED") && act.restart_run(run),
		!ended && run.status !== "CANCELLING" && act.cancel_run(run),
	];
}

function Approval({ run }) {
	const { data } = useLoad(`why/${run.id}`);
	const step = data?.reason === "RUN_APPROVAL" && run.steps.find((s) => s.status === "WAITING");
	return step ? html`<${Actions} of=${act.decide_approval(run, step.name)} label="the decision" />` : null;
}

export function Run({ id }) {
	const { data: run, error } = useLoad(`workflow-runs/${encodeURIComponent(id)}`);
	if (!run) return html`<${Page} title="Run" crumbs=${html`<a href="#/runs">Runs</a>`}><${Failure} error=${error} /></${Page}>`;
	return html`<${Page} title=${id} crumbs=${html`<a href="#/runs">Runs</a><span class="sep">›</span><a href=${"#/runs?definitionId=" + encodeURIComponent(run.definitionId)}><${Text} of=${run.definitionId} /></a>${run.parent && html`<span class="sep">›</span><${Id} of=${run.parent.run} />`}`} aside=${html`<${Status} of=${run.status} />`}>
		<${Failure} error=${error} />
		<${Why} id=${id} />
		<${Approval} run=${run} />
		<${Actions} of=${verbs_of(run)} />
		<${Facts} of=${[
			[run.definitionVersion ? "workflow" : "function", html`<a href=${link`workflows/${run.definitionId}`}><${Text} of=${run.definitionId} /></a>${run.definitionVersion ? `, definition ${run.definitionVersion}` : ""}`],
			["version", String(run.version)],
			["key", run.idempotencyKey && html`<code><${Text} of=${run.idempotencyKey} /></code>`],
			["trace", html`<${Trace} run=${run.id} />`],
			["created", html`<${Time} of=${run.createdAt} />`],
			["started", run.startedAt && html`<${Time} of=${run.startedAt} />`],
			["ended", run.completedAt && html`<${Time} of=${run.completedAt} />`],
			["took", html`<${Age} since=${run.createdAt} until=${run.completedAt} />`],
			["parent", run.parent && html`<${Id} of=${run.parent.run} />, step <${Text} of=${run.parent.step} />, n ${String(run.parent.n)}`],
			["in the place of", run.restartOf && html`<${Id} of=${run.restartOf} />`],
			["goes on as", run.restartedBy && html`<${Id} of=${run.restartedBy} />`],
		]} />
		${run.error && !run.steps.some((s) => s.error?.message === run.error.message) && html`<div class="note bad"><strong><${Text} of=${run.error.code || "error"} /></strong> <${Long} of=${run.error.message ?? ""} /></div>`}
		<${Waterfall} run=${run} />
		<${Children} run=${run} />
		${run.restartOf && html`<${Before} run=${run} />`}
		<div class="columns"><${Data} title="Input" of=${run.input} /><${Data} title="State" of=${run.state} /><${Data} title="Output" of=${run.output} /></div>
		<section><h2>History</h2><${History} subject=${id} /></section>
		<section><h2>The same in a terminal</h2><${Command} of=${command("run", "show", id)} /><${Command} of=${command("run", "history", id)} /><${Command} of=${command("why", id)} /></section>
	</${Page}>`;
}
