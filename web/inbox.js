// Home: all that waits for a person, the oldest first or that with the most money, with what can be done about it.
import { useState } from "./vendor/hooks.js";
import * as act from "./actions.js";
import { go_query, grouped, html, link, path, query, where } from "./lib.js";
import { resolve_record } from "./gate.js";
import { Sent } from "./sent.js";
import { Actions, Age, Choice, Failure, Id, Page, Status, Text, Why, reload_all, useLoad } from "./ui.js";

export const KINDS = {
	held_claim: "Claim held", unknown_step: "Outcome unknown", failed_compensation: "Compensation failed", failed_run: "Run failed", approval: "Approval", paused_run: "Paused",
	parked_job: "Job parked", parked_after_effect: "After-effect parked", unknown_items: "Items unknown", stuck_teardown: "Teardown stuck", late_schedule: "Schedule late",
	held_function: "Function held", unpolled_function: "Nobody polls for it", held_request: "Request held",
};
const SEVERE = new Set(["held_claim", "unknown_step", "failed_compensation", "unknown_items", "held_request"]);

// What is put right on its own page.
const SEEN = {
	unknown_items: (item) => link`batches/${item.id}` + "?item_status=UNKNOWN", stuck_teardown: (item) => link`batches/${item.id}`, unpolled_function: () => "#/functions", late_schedule: (item) => link`schedules/${item.step}`,
};

function actions_of(item) {
	const run = { id: item.id, version: item.version };
	switch (item.kind) {
	case "held_claim": {
		const [, workflow, id] = claimed(item);
		return act.resolve_claim({ workflow, id, version: item.version }, item.step);
	}
	case "unknown_step":
		return [...act.resolve_step(run, item.step), act.cancel_run(run)];
	case "held_request":
		return resolve_record(item.request);
	case "failed_compensation":
		return [act.retry_undo(run)];
	case "held_function":
	case "failed_run":
		return [act.retry_run(run), act.cancel_run(run)];
	case "approval":
		return [...act.decide_approval(run, item.step), act.cancel_run(run)];
	case "paused_run":
		return [act.resume_run(run), act.cancel_run(run)];
	case "parked_job":
	case "parked_after_effect":
		return [act.redrive_job(item)];
	default:
		return [];
	}
}

function Subject({ item }) {
	if (item.kind === "held_request") return html`<a class="id" href=${"#/gate" + query({ key: item.request.key })}><${Text} of=${item.request.key} /></a>`;
	if (item.kind === "late_schedule") return html`<a class="id" href=${link`schedules/${item.step}`}><${Text} of=${item.step} /></a>`;
	return html`<${Id} of=${item.id} />`;
}

const claimed = (item) => /^entity:([^:]+):(.+)$/s.exec(item.id) || [];
function SentOf({ item }) {
	const [, workflow, id] = claimed(item);
	if (item.kind === "held_claim") return html`<${Sent} of=${link`entities/${workflow}/${id}`.slice(2)} step=${item.step} asks=${["entity", "probe", workflow, id, item.step]} />`;
	if (item.kind === "unknown_step") return html`<${Sent} of=${`workflow-runs/${item.id}`} id=${item.id} step=${item.step} asks=${["run", "probe", item.id, item.step]} />`;
	return /^parked/.test(item.kind) ? html`<${Sent} of=${`jobs/${item.id}`} />` : null;
}

// The first items of a batch that are UNKNOWN, each with what was sent and what can be done. One that was decided here stays until it is closed.
const ITEMS = 3;
function Items({ of: batch, settled, done, closed }) {
	const { data } = useLoad(settled ? null : path`batches/${batch.id}/items` + query({ status: "UNKNOWN", limit: ITEMS }));
	const [kept, keep] = useState([]);
	const open = (!settled && data?.items) || [];
	const items = [...open, ...kept.filter((k) => !open.some((i) => i.n === k.n))].sort((a, b) => a.n - b.n);
	const over = (item) => () => {
		keep((all) => all.filter((k) => k.n !== item.n));
		if (settled && kept.length < 2) closed();
	};
	return items.map((item) => html`<div key=${item.n} class="one"><div class="said"><p><a href=${link`batches/${batch.id}` + query({ item_status: "UNKNOWN", item: item.n })}>Item ${String(item.n)}</a> <span class="money">charged <b>${grouped(item.charged)}</b></span></p>
		${open.includes(item) && html`<${Sent} of=${`batches/${batch.id}/items/${item.n}`} asks=${["batch", "probe", batch.id, item.n]} />`}</div>
		<${Actions} of=${open.includes(item) ? act.resolve_item(batch, item.n) : []} label=${`what became of item ${item.n}`} closed=${over(item)} done=${() => {
			keep((all) => [...all.filter((k) => k.n !== item.n), item]);
			done();
		}} /></div>`);
}

function Item({ item, settled, done, closed }) {
	return html`<article class="item ${settled ? "settled" : SEVERE.has(item.kind) ? "severe" : ""}" data-kind=${item.kind} data-id=${item.request?.key ?? item.id} tabindex="-1">
		<header>
			<span class="kind">${KINDS[item.kind] || item.kind}</span>
			<span class="place">${item.workflow && html`<a href=${link`workflows/${item.workflow}`}><${Text} of=${item.workflow} /></a>`}${item.step && item.kind !== "late_schedule" && html`${item.workflow && html`<span class="sep">›</span>`}<${Text} of=${item.step} />`}</span>
			<${Subject} item=${item} />
			${!settled && html`<${Status} of=${item.status} />${item.money !== null && html`<span class="money">amount <b>${grouped(item.money)}</b></span>`}<span class="age">waits <${Age} since=${item.since} /></span>`}
		</header>
		<div class="said">${item.request ? html`<p class="why">The gate "<${Text} of=${item.request.gate ?? "gate"} />" has sent this request to its service, and knows of no answer. Whoever sends it again is refused until a person says whether it was done.</p>` : html`<${Why} id=${item.id} detail=${item.detail} />`}
			${!settled && html`<${SentOf} item=${item} />`}</div>
		${SEEN[item.kind] && !settled && html`<div class="actions row"><a class="button" href=${SEEN[item.kind](item)}>${item.kind === "unknown_items" ? "all of them" : "look at it"}</a></div>`}
		${item.kind === "unknown_items" && html`<${Items} of=${item} settled=${settled} done=${done} closed=${closed} />`}
		<${Actions} of=${settled ? [] : actions_of(item)} done=${done} closed=${closed} label=${`what can be done about ${item.id}`} />
	</article>`;
}

function AllWell() {
	return html`<div class="empty well"><p class="big">Nothing waits for you.</p><p>Steps whose outcome is unknown, failed runs, parked jobs and approvals come here, the oldest first.</p>
		<p>Start something: <code>hapax run start WORKFLOW</code>, or from <a href="#/workflows">a workflow's page</a>.</p></div>`;
}

const name_of = (item) => item.kind + (item.request?.record ?? item.id);
const same = (a) => (b) => name_of(a) === name_of(b);

const PAGE = 30;
export const INBOX = "attention" + query({ limit: PAGE });

export function Inbox() {
	const { kind, cursor, order } = where().query;
	const { data, error } = useLoad("attention" + query({ kind, order, cursor, limit: PAGE }));
	// What somebody has acted on here stays where it was, with what became of it, until it is closed.
	const [kept, keep] = useState([]);
	const settled = kept.filter(({ item }) => data && !data.items.some(same(item)));
	const items = [...(data?.items || [])];
	for (const { item, at } of settled) items.splice(at, 0, item);
	const acted = (item, at) => () => {
		keep((all) => (all.some((k) => same(item)(k.item)) ? all : [...all, { item, at }]));
		reload_all();
	};
	return html`<${Page} title="Inbox" aside=${html`<${Choice} name="kind" label="Kind" words=${Object.keys(KINDS)} names=${KINDS} value=${kind} /><${Choice} name="order" label="First" none="the oldest" words=${["money"]} names=${{ money: "the most money" }} value=${order} />`}>
		<${Failure} error=${error} />
		${data && !items.length && (kind || cursor ? html`<div class="empty"><p>Nothing of this kind.</p><p><a href="#/">Show all</a></p></div>` : html`<${AllWell} />`)}
		${items.map((item, at) => html`<${Item} key=${name_of(item)} item=${item} settled=${settled.some((k) => k.item === item)} done=${acted(item, at)} closed=${() => keep((all) => all.filter((k) => !same(item)(k.item)))} />`)}
		${(cursor || data?.cursor) && html`<div class="pager">${cursor && html`<button class="button" onClick=${() => go_query({ cursor: "" })}>from the beginning</button>`}${data?.cursor && html`<button class="button" onClick=${() => go_query({ cursor: data.cursor })}>next page</button>`}</div>`}
	</${Page}>`;
}
