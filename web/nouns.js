// Entities, batches, jobs, accounts, schedules and functions: a list and a page each.
import { useRef } from "./vendor/hooks.js";
import * as act from "./actions.js";
import { command, go_query, grouped, html, link, local, may, path, query, where } from "./lib.js";
import { Actions, Age, Choice, Command, CountsOf, Data, Facts, Failure, History, Id, Json, List, Long, Money, Page, Proof, Roll, Status, Text, Time, ToAll, Typed, Why, tone_of, useLoad } from "./ui.js";
import { Chart } from "./chart.js";
import { Picture } from "./picture.js";
import { Sent } from "./sent.js";

export const crumb = (to, words) => html`<a href=${to}>${words}</a>`;
const Terminal = ({ of }) => html`<section><h2>The same in a terminal</h2>${of.map((c) => html`<${Command} key=${c} of=${c} />`)}</section>`;

// ---- entities --------------------------------------------------------------------------------------------------

export const entity_columns = [
	{ name: "entity", class: "cut", of: (e) => html`<${Text} of=${e.id} />` },
	{ name: "status", of: (e) => html`<${Status} of=${e.status} />` },
	{ name: "version", class: "n", of: (e) => String(e.version) },
	{ name: "claim", of: (e) => e.claim && html`<${Text} of=${e.claim.step} />${e.claim.held ? ", held for a person" : ""}` },
	{ name: "updated", of: (e) => html`<${Time} of=${e.updatedAt} />` },
];

export function EntityKinds() {
	const { data, error } = useLoad("definitions");
	const kinds = data?.items.filter((d) => d.kind === "entity") || [];
	return html`<${Page} title="Entities"><${Failure} error=${error} />
		${data && !kinds.length && html`<div class="empty"><p class="big">No workflow of kind entity.</p><p>Write one, and serve its folder:</p><${Command} of="hapax serve --workflows FOLDER" /></div>`}
		${kinds.length > 0 && html`<p class="quiet">Entities are listed by workflow.</p><ul class="cards">${kinds.map((d) => html`<li key=${d.name}><a href=${link`entities/${d.name}`}><strong><${Text} of=${d.name} /></strong><span class="quiet">version ${String(d.version)}</span></a></li>`)}</ul>`}
	</${Page}>`;
}

export function Entities({ workflow }) {
	const { status, held, where: condition } = where().query;
	return html`<${Page} title=${workflow} crumbs=${crumb("#/entities", "Entities")} aside=${html`<${Typed} name="status" label="Status" value=${status} hint="any" /><${Choice} name="held" label="Held" words=${["true"]} names=${{ true: "for a person" }} value=${held} /><${Typed} name="where" label="Where" value=${condition} hint='amount > 100 and customer == "c-1"' wide />`}>
		<${Actions} of=${[act.create_entity(workflow)]} />
		${!condition && html`<${CountsOf} noun="entities" name=${workflow} status=${status} />`}
		${(status || condition) && !held && html`<${ToAll} kind="entity" of=${{ workflow, status }} condition=${condition} />`}
		<${List} list=${path`entities/${workflow}`} name=${workflow} parameters=${{ status, held, where: condition }} columns=${entity_columns} to=${(e) => link`entities/${e.workflow}/${e.id}`}
			empty=${html`<p class="big">None yet.</p><${Command} of=${command("entity", "create", workflow, "ID")} />`} />
	</${Page}>`;
}

// How it came there: each status that it was in, the last one last; and the same in the picture of its workflow.
function Trail({ e, subject }) {
	const { data } = useLoad(`history/${encodeURIComponent(subject)}?limit=200`);
	if (!data) return null;
	const been = new Set(data.items.map((r) => r.to));
	return html`<section><h2>How it came here</h2><ol class="trail">${data.items.slice(-24).map((r, i, all) => html`<li key=${r.seq} class=${i === all.length - 1 && !data.cursor ? "here" : ""}><span><${Text} of=${r.to} /></span>${r.step && html`<small><${Text} of=${r.step} /></small>`}</li>`)}</ol>
		${may("admin") && html`<${Picture} name=${e.workflow} marks=${(place) => (place.name === e.status ? html`<b class="here" title="it is here">here</b>` : been.has(place.name) ? html`<b class="been" title="it was here"></b>` : null)} />`}</section>`;
}

export function Entity({ workflow, id }) {
	const { data: e, error } = useLoad(path`entities/${workflow}/${id}`);
	const { data: all } = useLoad("definitions");
	const crumbs = html`<a href="#/entities">Entities</a><span class="sep">›</span><a href=${link`entities/${workflow}`}><${Text} of=${workflow} /></a>`;
	if (!e) return html`<${Page} title="Entity" crumbs=${crumbs}><${Failure} error=${error} /></${Page}>`;
	const subject = `entity:${workflow}:${id}`;
	const steps = all?.items.find((d) => d.name === workflow)?.definition?.steps || [];
	const open = e.claim ? [] : [...new Set(steps.filter((s) => s.status === e.status).map((s) => s.step_key))];
	return html`<${Page} title=${html`<${Text} of=${id} />`} crumbs=${crumbs} aside=${html`<${Status} of=${e.status} />`}>
		<${Failure} error=${error} /><${Why} id=${subject} />
		${e.claim?.held && html`<${Sent} of=${path`entities/${workflow}/${id}`} step=${e.claim.step} asks=${["entity", "probe", workflow, id, e.claim.step]} /><${Actions} of=${act.resolve_claim(e, e.claim.step)} />`}
		<${Actions} of=${open.map((step) => act.fire_step(e, step))} label="steps that can be fired" />
		<${Facts} of=${[["workflow", html`<a href=${link`workflows/${workflow}`}><${Text} of=${workflow} /></a>`], ["version", String(e.version)], ["updated", html`<${Time} of=${e.updatedAt} />`],
			["claim", e.claim && html`<${Text} of=${e.claim.step} /> by <${Text} of=${e.claim.requester} />, ${e.claim.held ? "held for a person" : html`until <${Time} of=${e.claim.until} />`}, fence ${String(e.claim.fence)}`]]} />
		<${Trail} e=${e} subject=${subject} />
		<div class="columns"><${Data} title="Data" of=${e.data} /></div>
		<section><h2>History</h2><${History} subject=${subject} /></section>
		<${Terminal} of=${[command("entity", "show", workflow, id), command("entity", "history", workflow, id), command("why", subject)]} />
	</${Page}>`;
}

// ---- batches ---------------------------------------------------------------------------------------------------

const BATCH_STATUSES = ["LOADING", "PENDING", "QUEUED", "RUNNING", "CANCELLING", "COMPLETED", "CANCELLED", "OUT_OF_CREDIT", "FAILED"];
const ITEM_STATUSES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "UNKNOWN"];
const PARTS = [["succeeded", "good"], ["running", "live"], ["unknown", "bad"], ["failed", "bad"], ["pending", "calm"]];
const share = (batch, name) => (Number(batch.total) ? (100 * Number(batch[name])) / Number(batch.total) : 0);

function Progress({ batch }) {
	return html`<div class="progress" role="img" aria-label=${PARTS.map(([name]) => `${batch[name]} ${name}`).join(", ")}>${PARTS.map(([name, tone]) => html`<i key=${name} class="${tone} ${name}" title=${`${grouped(batch[name])} ${name}`} style=${{ width: `${share(batch, name)}%` }}></i>`)}</div>`;
}

export const batch_columns = [
	{ name: "batch", of: (b) => b.id },
	{ name: "workflow", of: (b) => html`<${Text} of=${b.workflow} />` },
	{ name: "status", of: (b) => html`<${Status} of=${b.status} />` },
	{ name: "items", class: "n", of: (b) => grouped(b.total) },
	{ name: "progress", class: "wide", of: (b) => html`<${Progress} batch=${b} />` },
	{ name: "account", of: (b) => html`<${Text} of=${b.account} />` },
	{ name: "paid", class: "n", of: (b) => grouped(BigInt(b.charged) - BigInt(b.refunded)) },
	{ name: "created", of: (b) => html`<${Time} of=${b.createdAt} />` },
];

export function Batches() {
	const { status, workflow, where: condition } = where().query;
	return html`<${Page} title="Batches" aside=${html`<${Choice} name="status" label="Status" words=${BATCH_STATUSES} value=${status} /><${Typed} name="workflow" label="Workflow" value=${workflow} hint="any" /><${Typed} name="where" label="Where" value=${condition} hint='total > 100 and customer == "c-1"' wide />`}>
		${!condition && html`<${CountsOf} noun="batches" name=${workflow} words=${BATCH_STATUSES} status=${status} />`}
		<${ToAll} kind="batch" of=${{ status, workflow }} condition=${condition} />
		<${List} list="batches" name="batches" parameters=${{ status, workflow, where: condition }} columns=${batch_columns} to=${(b) => link`batches/${b.id}`} note="the newest first"
			empty=${html`<p class="big">No batch yet.</p><p>Items with a cost, and an account that pays:</p><${Command} of="hapax batch start WORKFLOW --account ACCOUNT --items items.json" />`} />
	</${Page}>`;
}

function Item({ batch, item, close }) {
	return html`<div class="card"><h3>Item ${String(item.n)} <${Status} of=${item.status} /> ${item.decision}<button class="link copy" onClick=${close}>close</button></h3>
		<${Facts} of=${[["cost", grouped(item.cost)], ["charged", grouped(item.charged)], ["attempt", String(item.attempt)]]} />
		${item.status === "UNKNOWN" && html`<${Sent} of=${`batches/${batch.id}/items/${item.n}`} asks=${["batch", "probe", batch.id, item.n]} />`}
		${item.error && html`<div class="note bad"><${Long} of=${item.error} /></div>`}
		<${Actions} of=${[...(item.status === "UNKNOWN" ? act.resolve_item(batch, item.n) : []), item.status === "SUCCEEDED" && !item.decision && act.accept_item(batch, item.n)]} />
		<div class="columns"><${Data} title="Input" of=${item.input} /><${Data} title="Output" of=${item.output} />${item.late !== null && html`<${Data} title="Late" of=${item.late} />`}</div>
	</div>`;
}

// A cell for each item, 500 at a time; which one is open is part of the address.
function Cells({ batch }) {
	const { item_status, item, cursor } = where().query;
	const n = item === undefined ? null : Number(item), choose = (m) => go_query({ item: m });
	const { data, error } = useLoad(path`batches/${batch.id}/items` + query({ limit: 500, cursor, status: item_status }));
	const last = useRef(null); // an item that does not fit the filter any more stays until it is closed
	const chosen = n === null ? null : data?.items.find((i) => i.n === n) || (last.current?.n === n ? last.current : null);
	last.current = chosen;
	return html`<section><h2>Items<${Choice} name="item_status" label="Status" words=${ITEM_STATUSES} value=${item_status} /></h2><${Failure} error=${error} />
		<div class="cells" role="group" aria-label="items">${data?.items.map((i) => html`<button key=${i.n} class="${tone_of(i.status)} ${i.status.toLowerCase()} ${i.decision || ""} ${i.n === n ? "open" : ""}" title=${`${i.n}: ${i.status}${i.decision ? ", " + i.decision : ""}`} aria-label=${`item ${i.n}: ${i.status}`} onClick=${() => choose(i.n === n ? null : i.n)}></button>`)}</div>
		${data && !data.items.length && html`<p class="quiet">None.</p>`}
		${(cursor || data?.cursor) && html`<div class="pager">${cursor && html`<button class="button" onClick=${() => go_query({ cursor: "", item: "" })}>from the first</button>`}${data?.cursor && html`<button class="button" onClick=${() => go_query({ cursor: data.cursor, item: "" })}>next 500</button>`}</div>`}
		${chosen && html`<${Item} key=${n} batch=${batch} item=${chosen} close=${() => choose(null)} />`}
	</section>`;
}

// Of a batch of this many items at most: its ledger is as long as they are many.
const DRAWN_ITEMS_MAX = 2000;
function Paid({ batch }) {
	const { data } = useLoad(Number(batch.total) <= DRAWN_ITEMS_MAX && BigInt(batch.charged) > 0n ? `evidence/${batch.id}` : null);
	const entries = data?.ledger?.entries || [];
	if (entries.length < 2) return null;
	let charged = 0, back = 0;
	const rows = entries.map((e) => {
		const amount = Number(e.amount);
		if (amount < 0) charged -= amount;
		else back += amount;
		return { at: Date.parse(e.time), charged, back, paid: charged - back };
	});
	return html`<section class="charts"><${Chart} title="Money" rows=${[{ ...rows[0], charged: 0, back: 0, paid: 0 }, ...rows]} shortest=${1000} stepped lines=${[["taken", (r) => r.charged, "live"], ["given back", (r) => r.back, "warn"], ["paid", (r) => r.paid, "good"]]} /></section>`;
}

export function Batch({ id }) {
	const { data: b, error } = useLoad(`batches/${encodeURIComponent(id)}`);
	if (!b) return html`<${Page} title="Batch" crumbs=${crumb("#/batches", "Batches")}><${Failure} error=${error} /></${Page}>`;
	const over = ["COMPLETED", "CANCELLED", "FAILED", "CANCELLING"].includes(b.status);
	return html`<${Page} title=${id} crumbs=${crumb("#/batches", "Batches")} aside=${html`<${Status} of=${b.status} />`}>
		<${Failure} error=${error} /><${Why} id=${id} />
		<${Actions} of=${[b.status === "PENDING" && act.start_batch(b), !over && !b.cancelRequested && act.cancel_batch(b)]} />
		<${Progress} batch=${b} />
		<${Facts} of=${[["items", grouped(b.total)], ...PARTS.map(([name, tone]) => [name, html`<i class="swatch ${tone} ${name}"></i><${Roll} of=${grouped(b[name])} />`]), ["accepted", grouped(b.accepted)], ["cancelled", grouped(b.cancelled)]]} />
		<${Facts} of=${[["charged", html`<${Money} of=${b.charged} />`], ["refunded", html`<${Money} of=${b.refunded} />`], ["paid", html`<${Money} of=${BigInt(b.charged) - BigInt(b.refunded)} />`], ["needs", b.needs !== null && html`<${Money} of=${b.needs} />`],
			["account", html`<a href=${link`accounts/${b.account}`}><${Text} of=${b.account} /></a>`], ["workflow", html`<a href=${link`workflows/${b.workflow}`}><${Text} of=${b.workflow} /></a>, definition ${String(b.definitionVersion)}`],
			["version", String(b.version)], ["key", b.idempotencyKey && html`<code><${Text} of=${b.idempotencyKey} /></code>`], ["created", html`<${Time} of=${b.createdAt} />`], ["ended", b.completedAt && html`<${Time} of=${b.completedAt} />`]]} />
		${b.error && html`<div class="note bad"><${Long} of=${b.error} /></div>`}
		<${Paid} batch=${b} />
		<${Cells} batch=${b} />
		<section><h2>History</h2><${History} subject=${id} /></section>
		<${Terminal} of=${[command("batch", "show", id), command("batch", "items", id), command("why", id)]} />
	</${Page}>`;
}

// ---- jobs ------------------------------------------------------------------------------------------------------

const JOB_STATUSES = ["AVAILABLE", "RUNNING", "RETRYING", "COMPLETED", "PARKED"];
const job_columns = [
	{ name: "job", of: (j) => j.id },
	{ name: "queue", of: (j) => html`<${Text} of=${j.queue} />` },
	{ name: "status", of: (j) => html`<${Status} of=${j.status} />` },
	{ name: "attempt", class: "n", of: (j) => String(j.attempt) },
	{ name: "for", class: "cut", of: (j) => (j.action ? html`<${Text} of=${j.action} />${j.workflow && html` of <${Text} of=${j.workflow} />`}` : html`<${Text} of=${j.key ?? ""} />`) },
	{ name: "error", class: "cut", of: (j) => html`<${Text} of=${(j.error || "").slice(0, 200)} />` },
	{ name: "due", of: (j) => html`<${Time} of=${j.runAt} />` },
];

export function Jobs() {
	const { status, queue } = where().query;
	return html`<${Page} title="Jobs" aside=${html`<${Choice} name="status" label="Status" words=${JOB_STATUSES} value=${status} /><${Typed} name="queue" label="Queue" value=${queue} hint="any" />`}>
		<${CountsOf} noun="jobs" name=${queue} words=${JOB_STATUSES} status=${status} />
		<${ToAll} kind="job" of=${{ status, queue }} />
		<${List} list="jobs" name="jobs" parameters=${{ status, queue }} columns=${job_columns} to=${(j) => link`jobs/${j.id}`}
			empty=${html`<p class="big">No job.</p><p>After-effects and steps of workers are jobs; and whatever you push:</p><${Command} of=${`hapax job push QUEUE --payload '{}' --key KEY`} />`} />
	</${Page}>`;
}

export function Job({ id }) {
	const { data: j, error } = useLoad(`jobs/${encodeURIComponent(id)}`);
	if (!j) return html`<${Page} title="Job" crumbs=${crumb("#/jobs", "Jobs")}><${Failure} error=${error} /></${Page}>`;
	return html`<${Page} title=${id} crumbs=${crumb("#/jobs", "Jobs")} aside=${html`<${Status} of=${j.status} />`}>
		<${Failure} error=${error} /><${Why} id=${id} />
		<${Actions} of=${[j.status === "PARKED" && !j.run && act.redrive_job(j)]} />
		<${Facts} of=${[["queue", html`<${Text} of=${j.queue} />`], ["attempt", String(j.attempt)], ["priority", String(j.priority)], ["run", j.run && html`<${Id} of=${j.run} />`], ["workflow", j.workflow && html`<a href=${link`workflows/${j.workflow}`}><${Text} of=${j.workflow} /></a>`], ["action", j.action && html`<${Text} of=${j.action} />`],
			["key", j.key && html`<code><${Text} of=${j.key} /></code>`], ["sent with the key", j.idempotencyKey && html`<code><${Text} of=${j.idempotencyKey} /></code>`], ["owner", j.owner && html`<${Text} of=${j.owner} />`], ["lease until", j.leaseUntil && html`<${Time} of=${j.leaseUntil} />`], ["due", j.runAt && html`<${Time} of=${j.runAt} />`], ["updated", html`<${Time} of=${j.updatedAt} />`]]} />
		${j.error && html`<div class="note bad"><${Long} of=${j.error} /></div>`}
		<div class="columns"><${Data} title="Payload" of=${j.payload} /><${Data} title="Output" of=${j.output} /></div>
		<section><h2>History</h2><${History} subject=${id} /></section>
		<${Terminal} of=${[command("job", "show", id), command("why", id)]} />
	</${Page}>`;
}

// ---- accounts --------------------------------------------------------------------------------------------------

export function Accounts() {
	return html`<${Page} title="Accounts"><${List} list="accounts" name="accounts" to=${(a) => link`accounts/${a.id}`}
		columns=${[{ name: "account", class: "cut", of: (a) => html`<${Text} of=${a.id} />` }, { name: "balance", class: "n", of: (a) => grouped(a.balance) }, { name: "opened", of: (a) => html`<${Time} of=${a.createdAt} />` }]}
		empty=${html`<p class="big">No account.</p><p>Batches are paid from one:</p><${Command} of="hapax account create ACCOUNT --balance 1000" />`} /></${Page}>`;
}

const signed = (amount) => (String(amount)[0] === "-" ? "\u2212" + grouped(String(amount).slice(1)) : "+" + grouped(amount));
// What the engine has written leads to the item that it was for.
function LedgerKey({ of }) {
	const [, batch, n] = /^\/(batch_\w+)\/(\d+)\//.exec(of) || [];
	return batch ? html`<a class="id" href=${link`batches/${batch}` + query({ item: n })}><${Text} of=${of} /></a>` : html`<code><${Text} of=${of} /></code>`;
}

export function Account({ id }) {
	const { data: a, error } = useLoad(path`accounts/${id}`);
	if (!a) return html`<${Page} title="Account" crumbs=${crumb("#/accounts", "Accounts")}><${Failure} error=${error} /></${Page}>`;
	return html`<${Page} title=${html`<${Text} of=${id} />`} crumbs=${crumb("#/accounts", "Accounts")}>
		<p class="sum"><${Money} of=${a.balance} /> <span class="quiet">balance</span></p>
		<${Actions} of=${[act.credit_account(a)]} />
		<section><h2>Ledger</h2><${List} list=${path`accounts/${id}/ledger`} name=${`ledger-${id}`} key_of=${(r) => r.seq} columns=${[
			{ name: "seq", class: "n", of: (r) => String(r.seq) }, { name: "time", of: (r) => html`<${Time} of=${r.time} />` }, { name: "amount", class: "n", of: (r) => signed(r.amount) }, { name: "balance", class: "n", of: (r) => grouped(r.balance) }, { name: "reason", of: (r) => html`<${Text} of=${r.reason} />` }, { name: "key", class: "cut", of: (r) => html`<${LedgerKey} of=${r.key} />` }]} empty=${html`<p>Nothing yet.</p>`} /><${Proof} subject=${"account:" + id} chained=${false} /></section>
		<${Terminal} of=${[command("account", "show", id), command("account", "ledger", id), command("evidence", "account:" + id)]} />
	</${Page}>`;
}

// ---- schedules -------------------------------------------------------------------------------------------------

const starts = (s) => s.workflow || s.batch?.workflow || s.fire?.workflow || "";
export function Schedules() {
	return html`<${Page} title="Schedules"><${List} list="schedules" name="schedules" key_of=${(s) => s.name} to=${(s) => link`schedules/${s.name}`}
		columns=${[{ name: "schedule", class: "cut", of: (s) => html`<${Text} of=${s.name} />` }, { name: "starts", of: (s) => html`<${Text} of=${starts(s)} />` }, { name: "when", of: (s) => html`<code><${Text} of=${s.cron || s.every || ""} /></code>` }, { name: "time zone", of: (s) => html`<${Text} of=${s.timezone} />` },
			{ name: "next", of: (s) => (s.paused ? html`<${Status} of="PAUSED" />` : html`<${Time} of=${s.next[0]} />`) }, { name: "last", of: (s) => html`<${Time} of=${s.last?.startedAt} />` }]}
		empty=${html`<p class="big">No schedule.</p><${Command} of="hapax schedule put NAME --workflow WORKFLOW --cron '0 6 * * *'" />`} /></${Page}>`;
}

export function Schedule({ name }) {
	const { data: s, error } = useLoad(path`schedules/${name}`);
	if (!s) return html`<${Page} title="Schedule" crumbs=${crumb("#/schedules", "Schedules")}><${Failure} error=${error} /></${Page}>`;
	const last = s.last?.run || s.last?.batch || s.last?.job;
	return html`<${Page} title=${html`<${Text} of=${name} />`} crumbs=${crumb("#/schedules", "Schedules")} aside=${s.paused && html`<${Status} of="PAUSED" />`}>
		<${Failure} error=${error} /><${Why} id=${s.id} />
		<${Actions} of=${[s.paused ? act.resume_schedule(s) : act.pause_schedule(s), act.trigger_schedule(s), act.delete_schedule(s)]} />
		<${Facts} of=${[["starts", html`<a href=${link`workflows/${starts(s)}`}><${Text} of=${starts(s)} /></a>`], ["when", html`<code><${Text} of=${s.cron || s.every} /></code>`], ["time zone", html`<${Text} of=${s.timezone} />`], ["overlap", s.overlap], ["catch up", html`<${Text} of=${s.catchUp} />`], ["jitter", s.jitter], ["from", s.from && html`<${Time} of=${s.from} />`], ["to", s.to && html`<${Time} of=${s.to} />`],
			["open", grouped(s.open)], ["waiting", grouped(s.waiting)], ["started", grouped(s.started)], ["skipped", grouped(s.skipped)], ["missed", grouped(s.missed)], ["last", s.last && html`<${Time} of=${s.last.startedAt} /> ${last && html`<${Id} of=${last} />`}`], ["version", String(s.version)]]} />
		<section><h2>Next</h2>${s.next.length ? html`<ol class="times">${s.next.map((t) => html`<li key=${t}><${Time} of=${t} /></li>`)}</ol>` : html`<p class="quiet">None.</p>`}</section>
		<div class="columns"><${Data} title="Input" of=${s.input} /><${Data} title="Batch" of=${s.batch} /><${Data} title="Fire" of=${s.fire} /></div>
		<section><h2>History</h2><${History} subject=${s.id} /></section>
		<${Terminal} of=${[command("schedule", "show", name)]} />
	</${Page}>`;
}

// ---- functions -------------------------------------------------------------------------------------------------

// Polls are written down once a minute.
const POLLED_MS = 150e3;
const polled = (f) => Date.now() - Date.parse(f.polledAt) < POLLED_MS;
export function Functions() {
	return html`<${Page} title="Functions"><${List} list="functions" name="functions" key_of=${(f) => f.name} to=${(f) => "#/runs" + query({ definitionId: f.name })}
		columns=${[{ name: "function", class: "cut", of: (f) => html`<${Text} of=${f.name} />` }, { name: "workers", of: (f) => html`<${Status} of=${polled(f) ? "polling" : "nobody polls"} />` }, { name: "last seen", of: (f) => html`<${Age} since=${f.polledAt} /> ago` },
			{ name: "version", of: (f) => html`<${Text} of=${f.version} />${f.versions > 1 ? html` <span class="quiet">and ${String(f.versions - 1)} more</span>` : ""}` }, { name: "turns due", class: "n", of: (f) => html`${grouped(f.due)}${f.due >= 1000 ? "+" : ""}` }, { name: "the oldest for", class: "n", of: (f) => (f.dueSince ? html`<${Age} since=${f.dueSince} />` : "") },
			{ name: "at work", class: "cut", of: (f) => html`<${Text} of=${f.workers.join(", ")} />` }]}
		empty=${html`<p class="big">No function.</p><p>A function is a run whose steps are code of yours, carried out by a worker that polls for it: see <code>docs/functions.md</code>.</p><${Command} of="hapax init --js DIR" /><${Command} of="hapax init --python DIR" />`} /></${Page}>`;
}
