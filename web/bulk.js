// One thing to many: what is selected, how many they are, carried out, and what came of each.
import { useState } from "./vendor/hooks.js";
import { command, fresh_key, get, go, grouped, html, link, may, query, send, where } from "./lib.js";
import { Actions, Choice, Command, Facts, Failure, Id, List, Page, REASON, Status, Text, Time, Typed, json_of, reason_of, useLoad } from "./ui.js";

const EVENT = { name: "event", label: "Event", hint: "its name" }, DATA = { name: "data", label: "Data", hint: "JSON; empty: null", lines: 3 };
const STEP = { name: "step", label: "Step", hint: "whose outcome is unknown" }, OUTPUT = { name: "output", label: "Output", hint: "JSON; empty: null", lines: 3 };
const TO = { name: "to", label: "To version", hint: "of their definition" };

const must = (form, name) => {
	const text = (form[name] || "").trim();
	if (!text) throw new Error(`${name} is needed`);
	return text;
};
const flags = (...pairs) => pairs.flatMap(([name, value]) => (value?.trim() ? [name, value.trim()] : []));

// What each verb asks for, as the API and the command line have it. Of runs, unless a kind is said.
const VERBS = {
	cancel: { says: "Each is cancelled, and compensates.", fields: [REASON], tone: "danger" },
	retry: { says: "Each that has failed goes on from the step that failed.", fields: [REASON] },
	resume: { says: "Each that is paused goes on.", fields: [REASON] },
	"resolve done": { says: "You have looked: the step has taken effect, in each of them.", fields: [STEP, OUTPUT, REASON], verb: "resolve", more: (form) => ({ step: must(form, "step"), outcome: "done", output: json_of(form, "output") }), words: (form) => [form.step?.trim() || "STEP", "done", ...flags(["--output", form.output])] },
	"resolve not_done": { says: "You have looked: the step has not taken effect, in any of them. It is begun anew.", fields: [STEP, REASON], verb: "resolve", more: (form) => ({ step: must(form, "step"), outcome: "not_done" }), words: (form) => [form.step?.trim() || "STEP", "not_done"] },
	signal: { says: "Each gets the event, once.", fields: [EVENT, DATA], more: (form) => ({ event: must(form, "event"), data: json_of(form, "data") }), words: (form) => [form.event?.trim() || "EVENT", ...flags(["--data", form.data])] },
	"cancel batches": { says: "Each is cancelled, and refunded.", kind: "batch", verb: "cancel", fields: [], tone: "danger", words: () => ["--kind", "batch"] },
	"start batches": { says: "Each that is held is started.", kind: "batch", verb: "start", fields: [] },
	"resolve claims done": { says: "You have looked: the step has taken effect, in each of these entities.", kind: "entity", fields: [STEP, OUTPUT, REASON], verb: "resolve", more: (form) => ({ step: must(form, "step"), outcome: "done", output: json_of(form, "output") }), words: (form) => [form.step?.trim() || "STEP", "done", "--kind", "entity", ...flags(["--output", form.output])] },
	"resolve claims not_done": { says: "You have looked: the step has not taken effect, in any of these entities. The claims are given back.", kind: "entity", fields: [STEP, REASON], verb: "resolve", more: (form) => ({ step: must(form, "step"), outcome: "not_done" }), words: (form) => [form.step?.trim() || "STEP", "not_done", "--kind", "entity"] },
	"redrive jobs": { says: "Each that is parked gets another try.", kind: "job", verb: "redrive", fields: [] },
	migrate: { says: "Each goes on with that version of its definition.", fields: [TO], more: (form) => ({ definitionVersion: Number(must(form, "to")) }), words: (form) => ["--to", form.to?.trim() || "N"] },
};

function start_bulk(name, condition) {
	const { says, fields, tone, kind = "run", verb = name, more = () => ({}), words = () => [] } = VERBS[name];
	return {
		label: `carry out: ${name.replace("_", " ")}`, title: `${name.replace("_", " ")} all of them`, tone: tone || "primary", says: `${says} The selection is what matches when you press; each is done once.`, path: "bulk", fields,
		body: (form) => ({ verb, kind, where: condition, arguments: { ...more(form), ...reason_of(form) } }),
		command: (form) => command("bulk", verb, ...words(form), "--where", condition, ...flags(["--reason", form.reason])),
		done: (answer) => {
			go(link`bulk/${answer.id}`);
			return `${answer.selected} are selected.`;
		},
	};
}

const NOUNS = { run: ["run", "runs"], batch: ["batch", "batches"], entity: ["entity", "entities"], job: ["job", "jobs"] };
const LISTS = { run: "#/runs", batch: "#/batches" }; // which take a condition without more
const verb_of = (b) => (b.kind === "run" ? b.verb : `${b.verb} ${NOUNS[b.kind]?.[1] || b.kind}`);
// What a dry run is asked with: any verb that the kind has, and that wants nothing.
const COUNTED = { run: { verb: "cancel" }, batch: { verb: "cancel" }, entity: { verb: "resolve", arguments: { step: "any", outcome: "done" } }, job: { verb: "redrive" } };

const bulk_columns = [
	{ name: "bulk", of: (b) => b.id },
	{ name: "verb", of: (b) => verb_of(b) },
	{ name: "status", of: (b) => html`<${Status} of=${b.status} />` },
	{ name: "selected", class: "n", of: (b) => grouped(b.selected) },
	{ name: "where", class: "cut", of: (b) => html`<code><${Text} of=${b.where} /></code>` },
	{ name: "by", of: (b) => html`<${Text} of=${b.requester} />` },
	{ name: "created", of: (b) => html`<${Time} of=${b.createdAt} />` },
];

export function Bulks() {
	const { where: condition, verb, kind: wanted } = where().query;
	const [state, set] = useState({});
	const known = Object.hasOwn(VERBS, verb || "") ? verb : ""; // what is done to many is nobody's default
	const kind_of = (name) => VERBS[name].kind || "run";
	const kind = known ? kind_of(known) : Object.hasOwn(NOUNS, wanted || "") ? wanted : "run";
	const [one, many] = NOUNS[kind], of = `${kind} ${condition}`;
	const counted = state.of === of ? state : {};
	const count = async () => {
		set({ of, busy: true });
		try {
			const data = await send("POST", "bulk", { ...COUNTED[kind], kind, where: condition, dryRun: true }, fresh_key());
			set({ of, n: data.selected });
		} catch (error) {
			set({ of, error });
		}
	};
	return html`<${Page} title="Bulk" aside=${html`<${Choice} name="verb" label="Verb" words=${Object.keys(VERBS).filter((name) => !wanted || kind_of(name) === kind)} none="which?" value=${known} /><${Typed} name="where" label="Where" value=${condition} hint='status == "FAILED" and workflow == "order"' wide />`}>
		${!condition && html`<div class="empty"><p class="big">One thing to many runs.</p><p>Or to batches, entities or jobs. Say which, as in the list of them (of entities: workflow == "…" and …); then how many they are is counted, before anything is done.</p><${Command} of=${`hapax bulk retry --where 'status == "FAILED"' --dry-run`} /></div>`}
		${condition && may("execute") && html`<div class="actions row"><button class="button" disabled=${counted.busy} onClick=${count}>${counted.busy ? "…" : "count them"}</button>${counted.n !== undefined && html`<span class="sum"><b>${grouped(counted.n)}</b> ${String(counted.n) === "1" ? `${one} matches` : `${many} match`}. </span>${LISTS[kind] && html`<a class="button" href=${LISTS[kind] + query({ where: condition })}>look at them</a>`}`}</div>
			<${Failure} error=${counted.error} />
			${counted.n > 0 && !known && html`<p class="quiet small">Choose what is to be done to them, above. Nothing is done before you press once more.</p>`}
			${counted.n > 0 && known && html`<${Actions} key=${known} of=${[start_bulk(known, condition)]} done=${() => {}} />`}`}
		<section><h2>Earlier ones</h2><${List} list="bulk" name="bulk" to=${(b) => link`bulk/${b.id}`} columns=${bulk_columns} empty=${html`<p class="quiet">None.</p>`} /></section>
		${condition && !may("execute") && html`<p class="quiet">This is for keys with the scope execute.</p>`}
	</${Page}>`;
}

const RESULTS = [["done", "good"], ["unchanged", "calm"], ["refused", "bad"], ["skipped", "warn"], ["cancelled", "off"]];
const FILTER_MAX = 100; // ids that an address has room for

// The items with this result, as a condition over them.
async function filter_of(id, result) {
	const ids = [];
	let cursor;
	do {
		const page = await get(`bulk/${id}/items` + query({ limit: 500, cursor }));
		ids.push(...page.items.filter((item) => item.result === result).map((item) => item.subject));
		cursor = page.cursor;
	} while (cursor && ids.length < FILTER_MAX);
	return `id in [${ids.slice(0, FILTER_MAX).map((x) => JSON.stringify(x)).join(", ")}]`;
}

export function Bulk({ id }) {
	const { data: b, error } = useLoad(`bulk/${encodeURIComponent(id)}`);
	const [failed, set_failed] = useState(null);
	const crumbs = html`<a href="#/bulk">Bulk</a>`;
	if (!b) return html`<${Page} title="Bulk" crumbs=${crumbs}><${Failure} error=${error} /></${Page}>`;
	const total = Number(b.selected) || 1;
	const over = b.status === "COMPLETED" || b.status === "CANCELLED";
	const cancel = { label: "cancel", title: "begin no further item", tone: "danger", says: "What is done stays done; what was not begun is left as it is.", path: `bulk/${id}/cancel`, command: () => `curl -X POST ${location.origin}/api/v1/bulk/${id}/cancel`, done: (answer) => `It is ${answer.status} now.` };
	const [one, many] = NOUNS[b.kind] || NOUNS.run, listed = LISTS[b.kind];
	const show = (result) => filter_of(id, result).then((condition) => go(listed + query({ where: condition })), set_failed);
	return html`<${Page} title=${id} crumbs=${crumbs} aside=${html`<${Status} of=${b.status} />`}>
		<${Failure} error=${error || failed} />
		<p class="why">${b.verb} of all ${many} where <code><${Text} of=${b.where} /></code></p>
		<${Actions} of=${[!over && cancel]} />
		<div class="progress" role="img" aria-label=${RESULTS.map(([name]) => `${b[name]} ${name}`).join(", ")}>${RESULTS.map(([name, tone]) => html`<i key=${name} class=${tone} title=${`${grouped(b[name])} ${name}`} style=${{ width: `${(100 * Number(b[name])) / total}%` }}></i>`)}</div>
		<div class="row results">${RESULTS.map(([name, tone]) => html`<button key=${name} class="button" disabled=${!listed || !Number(b[name])} onClick=${() => show(name)}><span class="status ${tone}"><i></i>${name}</span> ${grouped(b[name])}</button>`)}<span class="quiet">of ${grouped(b.selected)}${listed ? `; press one to see them as a list${Number(b.selected) > FILTER_MAX ? `, up to ${FILTER_MAX}` : ""}` : ""}</span></div>
		<${Facts} of=${[["by", html`<${Text} of=${b.requester} />`], ["key", b.idempotencyKey && html`<code><${Text} of=${b.idempotencyKey} /></code>`], ["created", html`<${Time} of=${b.createdAt} />`], ["ended", b.completedAt && html`<${Time} of=${b.completedAt} />`]]} />
		<section><h2>Items</h2><${List} list=${`bulk/${id}/items`} name=${id} key_of=${(r) => r.subject} columns=${[{ name: one, of: (r) => html`<${Id} of=${r.subject} />` }, { name: "result", of: (r) => (r.result ? html`<span class="status ${Object.fromEntries(RESULTS)[r.result]}"><i></i>${r.result}</span>` : html`<span class="quiet">open</span>`) }, { name: "code", of: (r) => r.code || "" }]} empty=${html`<p>Nothing was selected.</p>`} /></section>
		<section><h2>The same in a terminal</h2><${Command} of=${command("bulk", "show", id)} /><${Command} of=${command("bulk", "items", id)} /></section>
	</${Page}>`;
}
