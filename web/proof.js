// For a time range: every history of what began in it, verified here, row by row. Nobody has to believe the server's own audit.
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { get, go_query, grouped, html, path, query, span, where } from "./lib.js";
import { Command, Failure, Id, Long, Page, Typed, verify } from "./ui.js";

const SUBJECTS_MAX = 10000, AT_ONCE = 4, BAD_SHOWN = 100, HOUR = 3600e3;

// All lists that know a time: [list, row => subject].
async function lists() {
	const { items } = await get("definitions");
	return [["workflow-runs", (r) => r.id], ["batches", (b) => b.id], ...items.filter((d) => d.kind === "entity").map((d) => [path`entities/${d.name}`, (e) => `entity:${e.workflow}:${e.id}`])];
}

// The chain leads to where the subject is: its last row has the version and the status that is shown of it.
async function verify_one(subject, row, list) {
	const good = await verify(subject, () => {});
	let now = row;
	if (String(good.last.version) !== String(now.version)) now = await get(list.startsWith("entities") ? path`entities/${row.workflow}/${row.id}` : path`${list}/${row.id}`); // it has gone on meanwhile
	if (Number(good.last.version) < Number(row.version)) throw new Error(`It is in version ${row.version}, and its history ends with ${good.last.version}.`);
	if (String(good.last.version) === String(now.version) && good.last.to !== now.status) throw new Error(`It is ${now.status}, and its history ends with ${good.last.to}.`);
	return good.n;
}

async function verify_range(from, to, told, signal) {
	const sum = { subjects: 0, rows: 0, bad: [], more: false };
	const condition = `createdAt >= ${JSON.stringify(from)} and createdAt < ${JSON.stringify(to)}`;
	for (const [list, subject_of] of await lists()) {
		let cursor;
		do {
			const page = await get(list + query({ where: condition, limit: 100, cursor }), signal);
			const left = [...page.items];
			await Promise.all(Array.from({ length: AT_ONCE }, async () => {
				for (let row; (row = left.pop()) && !signal.aborted; told({ ...sum })) {
					const subject = subject_of(row);
					await verify_one(subject, row, list).then((n) => (sum.rows += n), (error) => sum.bad.push([subject, error]));
					sum.subjects++;
				}
			}));
			cursor = page.cursor;
			sum.more ||= Boolean(cursor) && sum.subjects >= SUBJECTS_MAX;
		} while (cursor && sum.subjects < SUBJECTS_MAX && !signal.aborted);
	}
	return sum;
}

const moment = (text, otherwise) => {
	const ms = text ? Date.parse(text) : otherwise;
	if (Number.isNaN(ms)) throw new Error(`"${text}" is no time: write 2026-11-18, or 2026-11-18 06:30`);
	return new Date(ms).toISOString();
};

export function Audit() {
	const { from, to } = where().query;
	const [state, set] = useState({});
	const aborter = useRef(null);
	useEffect(() => () => aborter.current?.abort(), []);
	const run = async () => {
		aborter.current?.abort();
		aborter.current = new AbortController();
		try {
			const begin = moment(from, Date.now() - HOUR), end = moment(to, Date.now());
			set({ busy: true, sum: { subjects: 0, rows: 0, bad: [] } });
			const began = performance.now();
			const sum = await verify_range(begin, end, (now) => set({ busy: true, sum: now }), aborter.current.signal);
			set({ sum, over: { begin, end, ms: performance.now() - began } });
		} catch (error) {
			if (error.name !== "AbortError") set({ error });
		}
	};
	const { sum, over, busy, error } = state;
	return html`<${Page} title="Proof" aside=${html`<${Typed} name="from" label="From" value=${from} hint="an hour ago" /><${Typed} name="to" label="To" value=${to} hint="now" />`}>
		<p class="why">Each row of a history has the hash of the one before it in its own. Here the browser reckons them again, for every run, batch and entity that began in this time, and compares where each chain ends with what is shown of it.</p>
		<div class="actions row"><button class="button" disabled=${busy || !globalThis.crypto?.subtle} onClick=${run}>${busy ? "…" : "verify"}</button>${!from && html`<button class="button" onClick=${() => go_query({ from: new Date(Date.now() - 24 * HOUR).toISOString() })}>the last day</button>`}</div>
		${!globalThis.crypto?.subtle && html`<p class="quiet">A browser reckons hashes only where a page came by TLS, or from this machine.</p>`}
		<${Failure} error=${error} />
		${sum && html`<p class="sum">${grouped(sum.rows)} <span class="quiet">rows of ${grouped(sum.subjects)} ${busy ? "so far" : "histories"}</span></p>`}
		${over && !sum.bad.length && html`<div class="note good" role="status"><strong>All of it holds.</strong> ${grouped(sum.subjects)} histories that began from ${over.begin} to ${over.end}, verified in ${span(over.ms)}.${sum.more ? " There are more: take a shorter time." : ""}</div>`}
		${sum?.bad.length > 0 && html`<div class="note bad" role="alert"><strong>${sum.bad.length === 1 ? "One does" : `${grouped(sum.bad.length)} do`} not hold.</strong></div><div class="scroll"><table class="list"><thead><tr><th>subject</th><th>what is wrong</th></tr></thead><tbody>${sum.bad.slice(0, BAD_SHOWN).map(([subject, e]) => html`<tr key=${subject}><td><${Id} of=${subject} /></td><td class="wrap"><${Long} of=${e.message} /></td></tr>`)}</tbody></table></div>`}
		<section><h2>The same in a terminal</h2><p class="quiet">For all there is, with ledgers, claims and items, by the store itself; and for one subject, as a file that is checked without a server:</p><${Command} of="hapax audit" /><${Command} of="hapax evidence SUBJECT -o FILE" /><${Command} of="hapax audit --bundle FILE" /></section>
	</${Page}>`;
}
