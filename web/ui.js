// What the pages are built of. All that comes from outside becomes text nodes, and nothing else.
import { Component } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import { Exact, Lost, command, fresh_key, get, get_text, go_query, grouped, here, home_of, html, local, may, parse_json, query, send, span, where, write_json } from "./lib.js";

// ---- text ------------------------------------------------------------------------------------------------------

// What cannot be seen, or turns the direction of what follows, is shown by its number.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
export function Text({ of }) {
	const text = String(of ?? "");
	if (!text.match(UNSEEN)) return text;
	const parts = [];
	let last = 0;
	for (const found of text.matchAll(UNSEEN)) {
		const code = "U+" + found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
		parts.push(text.slice(last, found.index), html`<span class="unseen">${code}</span>`);
		last = found.index + 1;
		if (parts.length > 2000) break;
	}
	parts.push(text.slice(last));
	return parts;
}

export function Long({ of, most = 600 }) {
	const [whole, set] = useState(false);
	const text = String(of ?? "");
	if (text.length <= most || whole) return html`<${Text} of=${text} />`;
	return html`<${Text} of=${text.slice(0, most)} />… <button class="link" onClick=${() => set(true)}>all ${grouped(text.length)} characters</button>`;
}

export const Time = ({ of }) => (of ? html`<time datetime=${of} title=${of}>${local(of)}</time>` : html`<span class="none">–</span>`);

export function Age({ since, until }) {
	if (!since) return html`<span class="none">–</span>`;
	const ms = (until ? Date.parse(until) : Date.now()) - Date.parse(since);
	return html`<time datetime=${since} title=${since}>${span(Math.max(ms, 0))}</time>`;
}

const TONES = {
	COMPLETED: "good", SUCCEEDED: "good", FAILED: "bad", PARKED: "bad", UNKNOWN: "bad", OUT_OF_CREDIT: "warn", PAUSED: "warn",
	CANCELLING: "warn", RETRYING: "warn", RUNNING: "live", LOADING: "live", polling: "live", "nobody polls": "warn", WAITING: "calm", PENDING: "calm", QUEUED: "calm",
	AVAILABLE: "calm", CANCELLED: "off", SKIPPED: "off", HELD: "bad", held: "bad", lost: "warn", in_flight: "live", completed: "good",
};
export const tone_of = (status) => TONES[status] || "calm";
export const Status = ({ of }) => html`<span class="status ${tone_of(of)}"><i></i><${Text} of=${of} /></span>`;

export function Id({ of, label }) {
	const home = home_of(of);
	const words = html`<${Text} of=${label ?? of} />`;
	return home ? html`<a class="id" href=${home}>${words}</a>` : html`<span class="id">${words}</span>`;
}

// A number that has changed is seen to have.
export const Roll = ({ of }) => html`<span key=${of} class="roll">${of}</span>`;
export const Money = ({ of }) => html`<span class="number">${grouped(of)}</span>`;

// ---- JSON, folded ----------------------------------------------------------------------------------------------

const SHOWN_MAX = 200;

function Leaf({ of }) {
	if (of instanceof Exact || typeof of === "number") return html`<span class="j-number">${String(of)}</span>`;
	if (typeof of === "string") return html`<span class="j-string">"<${Long} of=${of} />"</span>`;
	return html`<span class="j-word">${String(of)}</span>`;
}

function Branch({ name, of, depth }) {
	const keys = Object.keys(of), list = Array.isArray(of);
	const [open, set_open] = useState(depth < 2 && keys.length <= 30);
	const [shown, set_shown] = useState(SHOWN_MAX);
	const label = list ? `[${keys.length}]` : `{${keys.length}}`;
	return html`<div class="j-branch">
		<button class="j-fold" aria-expanded=${open} onClick=${() => set_open(!open)}>${name}<span class="j-count">${label}</span></button>
		${open && html`<div class="j-body">
			${keys.slice(0, shown).map((key) => html`<${Json} key=${key} name=${list ? key : key} list=${list} of=${of[key]} depth=${depth + 1} />`)}
			${keys.length > shown && html`<button class="link" onClick=${() => set_shown(shown * 10)}>${grouped(keys.length - shown)} more</button>`}
		</div>`}
	</div>`;
}

export function Json({ name, of, list, depth = 0 }) {
	const label = name === undefined ? null : html`<span class=${list ? "j-index" : "j-key"}><${Text} of=${name} /></span>`;
	const whole = of !== null && typeof of === "object" && !(of instanceof Exact);
	if (whole && Object.keys(of).length) return html`<${Branch} name=${label} of=${of} depth=${depth} />`;
	return html`<div class="j-line">${label}${whole ? html`<span class="j-word">${Array.isArray(of) ? "[]" : "{}"}</span>` : html`<${Leaf} of=${of} />`}</div>`;
}

// Every leaf with the way to it, as jq would say it. What has a name goes by that and not by its place: a step that moved has not changed.
function leaves(value, way = "", into = new Map()) {
	if (value === null || typeof value !== "object" || value instanceof Exact || !Object.keys(value).length) {
		into.set(way || ".", value);
		return into;
	}
	for (const [key, v] of Object.entries(value)) {
		const name = Array.isArray(value) ? `[${v?.name ?? v?.step_key ?? key}]` : /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
		leaves(v, into.has(way + name) ? `${way}[${key}]` : way + name, into);
	}
	return into;
}

const FOUND_MAX = 200, SEARCHED = 25;
function Found({ of, words }) {
	const wanted = words.toLowerCase();
	const found = [...of].filter(([way, v]) => way.toLowerCase().includes(wanted) || String(v).toLowerCase().includes(wanted));
	return html`<div class="json">${found.slice(0, FOUND_MAX).map(([way, v]) => html`<div class="j-line" key=${way}><span class="j-key"><${Text} of=${way} /></span><${Leaf} of=${v} /></div>`)}${!found.length && html`<span class="quiet">Nothing.</span>`}${found.length > FOUND_MAX && html`<span class="quiet">${grouped(found.length - FOUND_MAX)} more</span>`}</div>`;
}

export function Data({ title, of }) {
	const [words, set] = useState("");
	if (of === undefined) return null;
	const all = leaves(of);
	return html`<section class="data"><h3>${title}${all.size > SEARCHED && html`<input class="find" aria-label=${`find in ${title}`} placeholder="find" value=${words} onInput=${(e) => set(e.target.value)} />`}<${Copy} text=${() => write_json(of)} /></h3>${words.trim() ? html`<${Found} of=${all} words=${words.trim()} />` : html`<div class="json"><${Json} of=${of} /></div>`}</section>`;
}

const shown = (map, way) => (map.has(way) ? html`<${Leaf} of=${map.get(way)} />` : html`<span class="none">–</span>`);
export function Difference({ before, after, names }) {
	const then = leaves(before), now = leaves(after);
	const ways = [...new Set([...then.keys(), ...now.keys()])].filter((way) => then.has(way) !== now.has(way) || write_json(then.get(way) ?? null) !== write_json(now.get(way) ?? null));
	if (!ways.length) return html`<p class="quiet">They are the same.</p>`;
	return html`<div class="scroll"><table class="list difference"><thead><tr><th>where</th><th>${names[0]}</th><th>${names[1]}</th></tr></thead>
		<tbody>${ways.slice(0, FOUND_MAX).map((way) => html`<tr key=${way} class=${!then.has(way) ? "added" : !now.has(way) ? "gone" : ""}><td class="wrap"><code><${Text} of=${way} /></code></td><td class="wrap">${shown(then, way)}</td><td class="wrap">${shown(now, way)}</td></tr>`)}</tbody></table></div>
		${ways.length > FOUND_MAX && html`<p class="quiet">${grouped(ways.length - FOUND_MAX)} more</p>`}`;
}

export function Copy({ text, label = "copy" }) {
	const [said, say] = useState("");
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(text());
			say("copied");
		} catch {
			say("not allowed");
		}
		setTimeout(() => say(""), 1500);
	};
	return html`<button class="link copy" onClick=${copy}>${said || label}</button>`;
}

export const Command = ({ of }) => html`<div class="command"><code><${Text} of=${of} /></code><${Copy} text=${() => of} /></div>`;

// ---- asking ----------------------------------------------------------------------------------------------------

const listeners = new Set();
export const reload_all = (because) => listeners.forEach((fn) => fn(because));

// ---- live ------------------------------------------------------------------------------------------------------
// One tab of a browser listens (it holds a lock, and the next one gets that when it closes), and tells the others. What is told is
// only that something has changed: then what is shown is asked for again, at most once a second, and not while nobody looks.

const LIVE_MS = 1000;
export const live = { state: "waiting", paused: false, on: () => {} };
let mark = null, timer = null, missed = false, channel = null;

function refresh() {
	timer = null;
	if (live.paused || document.hidden) missed = true;
	else reload_all(live);
}
function heard({ state, mark: now }) {
	if (state && state !== live.state) {
		live.state = state;
		live.on();
	}
	if (now && now !== mark) {
		if (mark !== null && !timer) timer = setTimeout(refresh, LIVE_MS);
		mark = now;
	}
}
function tell(words) {
	heard(words);
	channel?.postMessage(words);
}
export function pause(on) {
	live.paused = on;
	live.on();
	if (!on) catch_up();
}
function catch_up() {
	if (!missed || live.paused || document.hidden) return;
	missed = false;
	reload_all();
}
export function go_live() {
	document.addEventListener("visibilitychange", catch_up);
	const listen = () => {
		const source = new EventSource("api/v1/changes");
		source.onmessage = (event) => tell({ state: "live", mark: event.data });
		source.onerror = () => {
			tell({ state: "lost" });
			if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000); // refused: not tried again by itself
		};
	};
	if (!navigator.locks || !window.BroadcastChannel) return listen();
	channel = new BroadcastChannel("hapax " + location.pathname);
	let leads = false;
	channel.onmessage = (event) => (event.data === "hello" ? leads && channel.postMessage({ state: live.state, mark }) : heard(event.data));
	channel.postMessage("hello");
	navigator.locks.request("hapax " + location.pathname, () => {
		leads = true;
		listen();
		return new Promise(() => {});
	});
}

// { data, error, loading, reload }; what was there stays while it is asked for anew. where null: nothing is asked. dear(data): it
// was much to look at, so it rests for a while where nothing but a change somewhere is the reason to ask again.
const REST_MS = 10000;
export function useLoad(asked, dear) {
	const [state, set] = useState({ loading: true });
	const [turn, set_turn] = useState(0);
	const last = useRef(null), rests = useRef(0); // until then
	useEffect(() => {
		let later = 0;
		const again = () => {
			later = clearTimeout(later);
			set_turn((n) => n + 1);
		};
		const fn = (because) => {
			const wait = because === live ? rests.current - Date.now() : 0;
			if (wait <= 0) again();
			else later ||= setTimeout(again, wait);
		};
		listeners.add(fn);
		return () => {
			clearTimeout(later);
			listeners.delete(fn);
		};
	}, []);
	useEffect(() => {
		if (asked === null) return;
		const aborter = new AbortController();
		if (last.current !== asked) set({ loading: true });
		last.current = asked;
		get(asked, aborter.signal).then(
			(data) => {
				rests.current = dear?.(data) ? Date.now() + REST_MS : 0;
				set({ data });
			},
			(error) => error.name !== "AbortError" && set((before) => ({ data: before.data, error })),
		);
		return () => aborter.abort();
	}, [asked, turn]);
	return { ...state, reload: () => set_turn((n) => n + 1) };
}

export function Failure({ error }) {
	if (!error) return null;
	return html`<div class="note bad" role="alert"><strong>${error.code || (error instanceof Lost ? "No answer" : "It did not work")}</strong> <${Long} of=${error.message} /></div>`;
}

// ---- acting ----------------------------------------------------------------------------------------------------
// An action is { label, title?, says, method?, path, body(form), fields?, command(form), tone?, done(answer)? }. One panel is one
// intention with one key: a second press, or one after a lost answer, is the same request. Who was too late is told so.

function Field({ field, form, set }) {
	const id = "f-" + field.name;
	const value = form[field.name] ?? "";
	const on = (event) => set({ ...form, [field.name]: event.target.value });
	return html`<label for=${id}>${field.label}</label>
		${field.lines
			? html`<textarea id=${id} rows=${field.lines} spellcheck="false" placeholder=${field.hint} value=${value} onInput=${on} />`
			: html`<input id=${id} autocomplete="off" placeholder=${field.hint} maxlength=${field.most} value=${value} onInput=${on} />`}`;
}

function words_for(error) {
	if (error instanceof Lost) return ["bad", "No answer came.", "Whether it was done is not known. Press again: under the same key it is done once."];
	if (error.code === "CONCURRENCY_ERROR") return ["warn", "You were not the first.", "It has changed since this page was read, so nothing was done. The page shows it as it is now."];
	if (error.status === 409) return ["warn", "Nothing was done.", error.message];
	return ["bad", error.code || "It did not work.", error.message];
}

function Panel({ action, close, done }) {
	const [form, set] = useState(() => Object.fromEntries((action.fields || []).map((f) => [f.name, f.initial ?? ""])));
	const [state, set_state] = useState({});
	const key = useRef(fresh_key());
	const busy = useRef(false); // at once: a second press may come before anything is drawn
	const first = useRef(null);
	useLayoutEffect(() => first.current.querySelector("input, textarea, button").focus(), []);
	const submit = async (event) => {
		event.preventDefault();
		if (busy.current) return;
		let body, to;
		try {
			body = action.body ? action.body(form) : {};
			to = typeof action.path === "function" ? action.path(form) : action.path;
		} catch (error) {
			set_state({ note: ["bad", "Not sent.", error.message] });
			return;
		}
		busy.current = true;
		set_state({ busy: true });
		try {
			const answer = await send(action.method || "POST", to, body, key.current);
			set_state({ note: ["good", "Done.", action.done ? action.done(answer) : `It is ${answer.status || "so"} now.`], over: true });
			done(answer);
		} catch (error) {
			set_state({ note: words_for(error), over: error.status === 409 });
			if (!(error instanceof Lost)) key.current = fresh_key(); // a definite answer; the next try is another intention
			if (error.status === 409) done(null);
		}
		busy.current = false;
	};
	return html`<form class="panel" ref=${first} onSubmit=${submit} onKeyDown=${(e) => e.key === "Escape" && close()}>
		<p>${action.says}</p>
		${!state.over && html`<div class="fields">${(action.fields || []).map((f) => html`<${Field} key=${f.name} field=${f} form=${form} set=${set} />`)}</div>
			<${Command} of=${action.command(form)} />`}
		${state.note && html`<div class="note ${state.note[0]}" role="status"><strong>${state.note[1]}</strong> <${Long} of=${state.note[2]} /></div>`}
		<div class="row">
			${!state.over && html`<button class="button ${action.tone || "primary"}" disabled=${state.busy}>${state.busy ? "…" : action.title || action.label}</button>`}
			<button type="button" class="button" onClick=${close}>${state.over ? "close" : "back"}</button>
		</div>
	</form>`;
}

export function Actions({ of, done = reload_all, closed, label }) {
	const [open, set] = useState(null);
	const actions = of.filter((a) => a && may(a.scope || "execute")); // who may only read sees none
	const close = () => {
		set(null);
		closed?.();
	};
	if (!actions.length && !open) return null;
	return html`<div class="actions">
		<div class="row" role="group" aria-label=${label || "what can be done"}>
			${actions.map((a) => html`<button class="button ${open?.label === a.label ? "open" : ""} ${a.tone || ""}" key=${a.label} title=${a.says} onClick=${() => set(open?.label === a.label ? null : a)}>${a.label}</button>`)}
		</div>
		${open && html`<${Panel} key=${open.label} action=${open} close=${close} done=${done} />`}
	</div>`;
}

// A field whose text is JSON; empty: it is left out.
export function json_of(form, name, must_be_object) {
	const text = (form[name] || "").trim();
	if (!text) return undefined;
	let value;
	try {
		value = parse_json(text);
	} catch (error) {
		throw new Error(`${name}: ${error.message}`);
	}
	if (must_be_object && (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Exact)) throw new Error(`${name} must be an object`);
	return value;
}
export const REASON = { name: "reason", label: "Reason", hint: "goes into the history", most: 1000 };
export const reason_of = (form) => (form.reason?.trim() ? { reason: form.reason.trim() } : {});

// ---- lists -----------------------------------------------------------------------------------------------------

export function Choice({ name, label, words, value, names = {}, none = "any" }) {
	return html`<label class="choice"><span>${label}</span><select value=${value || ""} onChange=${(e) => go_query({ [name]: e.target.value, cursor: "" })}>
		<option value="">${none}</option>${words.map((w) => html`<option key=${w} value=${w}>${names[w] || w}</option>`)}
	</select></label>`;
}

export function Typed({ name, label, value, hint, wide }) {
	return html`<label class="choice ${wide ? "wide" : ""}"><span>${label}</span><input value=${value || ""} placeholder=${hint} autocomplete="off" spellcheck="false"
		onChange=${(e) => go_query({ [name]: e.target.value.trim(), cursor: "" })} /></label>`;
}

// [status, how many, or more]; each is a filter.
export function Counts({ of, status, children }) {
	const shown = of.filter(([name, n]) => n || name === status);
	if (!of.some(([, n]) => n)) return null;
	return html`<nav class="counts" aria-label="how many, by status">${shown.map(([name, n, more]) => html`<a key=${name} href=${here({ status: name === status ? "" : name, cursor: "", unknown: "" })} aria-current=${name === status ? "true" : undefined} title=${more ? "as many at least: only the newest were counted" : undefined}><${Status} of=${name} /> <${Roll} of=${grouped(n) + (more ? "+" : "")} /></a>`)}${children}</nav>`;
}
// From what a list is filtered by, as one condition, to whatever is to be done to all of it.
export function ToAll({ kind, of, condition }) {
	const parts = Object.entries(of).filter(([, value]) => value).map(([name, value]) => `${name} == ${JSON.stringify(value)}`);
	const all = parts.length && condition ? [...parts, `(${condition})`] : condition ? [condition] : parts;
	return all.length > 0 && may("execute") && html`<p class="quiet"><a href=${"#/bulk" + query({ kind, where: all.join(" and ") })}>Do something to all of these</a></p>`;
}

// words: in this order; without them as they come.
export function CountsOf({ noun, name, words, status }) {
	const { data } = useLoad(`status-counts/${noun}` + query({ name }), (counts) => counts.items.some((i) => i.more));
	const items = data?.items || [];
	return html`<${Counts} of=${(words || items.map((i) => i.status)).map((word) => ((i) => [word, i?.n || 0, i?.more])(items.find((i) => i.status === word)))} status=${status} />`;
}

const ROWS_MAX = 10000;
// What begins a formula in a spreadsheet is kept from being one.
function csv_cell(value) {
	const text = value === null || value === undefined ? "" : typeof value === "object" && !(value instanceof Exact) ? write_json(value).replace(/\n\s*/g, " ") : String(value);
	return `"${(/^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
}

function download(name, type, text) {
	const a = document.createElement("a");
	a.href = URL.createObjectURL(new Blob([text], { type }));
	a.download = name;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

function Export({ list, parameters, name }) {
	const [busy, set] = useState("");
	const save = async (kind) => {
		const rows = [];
		let cursor;
		try {
			do {
				set(`${grouped(rows.length)}…`);
				const page = await get(list + query({ ...parameters, cursor, limit: 500 }));
				rows.push(...page.items);
				cursor = page.cursor;
			} while (cursor && rows.length < ROWS_MAX);
			const columns = [...new Set(rows.flatMap(Object.keys))];
			const text = kind === "json" ? write_json(rows) : [columns, ...rows.map((r) => columns.map((c) => r[c]))].map((r) => r.map(csv_cell).join(",")).join("\r\n");
			download(`${name}.${kind}`, kind === "json" ? "application/json" : "text/csv", text);
			set("");
		} catch (error) {
			set(error.message);
		}
	};
	return html`<span class="export">${busy || html`<button class="link" onClick=${() => save("csv")}>CSV</button><button class="link" onClick=${() => save("json")}>JSON</button>`}</span>`;
}

// ---- rows ----
// Of many rows only those around what is seen are there; the others are two empty ones of their height.

const DRAWN_MAX = 300, AROUND = 12;

function useWindow(n, body) {
	const [range, set] = useState([0, DRAWN_MAX]);
	const known = useRef(0);
	useEffect(() => {
		if (n <= DRAWN_MAX) return;
		const look = () => {
			const rows = body.current?.querySelectorAll("tr[data-row]");
			if (!rows?.length) return;
			// Measured once: what is not there must not change its height while somebody scrolls.
			const height = (known.current ||= (rows[rows.length - 1].getBoundingClientRect().bottom - rows[0].getBoundingClientRect().top) / rows.length || 30);
			const first = Math.max(0, Math.floor(-body.current.getBoundingClientRect().top / height) - AROUND);
			set((now) => (Math.abs(now[0] - first) < AROUND / 2 && now[2] ? now : [first, Math.min(n, first + Math.ceil(innerHeight / height) + 2 * AROUND), height]));
		};
		let asked = 0;
		const on = () => asked || (asked = requestAnimationFrame(() => { asked = 0; look(); }));
		look();
		document.addEventListener("scroll", on, { capture: true, passive: true });
		addEventListener("resize", on);
		return () => {
			cancelAnimationFrame(asked);
			document.removeEventListener("scroll", on, { capture: true });
			removeEventListener("resize", on);
		};
	}, [n]);
	return n <= DRAWN_MAX ? [0, n, 0] : [Math.min(range[0], n), Math.min(range[1], n), range[2] || 30];
}

// As wide as they were at first: what comes while somebody scrolls moves no column, and is not measured for it.
function useWidths(many, columns, body) {
	const [widths, set] = useState(null);
	useLayoutEffect(() => {
		const heads = [...body.current.parentNode.querySelectorAll("th")].map((th) => th.offsetWidth), sum = heads.reduce((a, b) => a + b, 0);
		set(many && sum ? heads.map((w) => `${((100 * w) / sum).toFixed(2)}%`) : null);
	}, [many, columns]);
	return widths?.length === columns ? widths : null;
}

// A table, and a block for each row on a small screen.
export function Rows({ rows, columns, to, key_of }) {
	const body = useRef(null);
	const [first, last, height] = useWindow(rows.length, body);
	const widths = useWidths(rows.length > DRAWN_MAX, columns.length, body);
	const space = (n) => n > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: `${n * height}px` }}></tr>`;
	return html`<div class="scroll"><table class="list rows ${widths ? "fixed" : ""}" aria-rowcount=${rows.length + 1}>${widths && html`<colgroup>${widths.map((width) => html`<col style=${{ width }} />`)}</colgroup>`}
		<thead><tr>${columns.map((c) => html`<th key=${c.name} class=${c.class}>${c.name}</th>`)}</tr></thead>
		<tbody ref=${body}>${space(first)}${rows.slice(first, last).map((row, i) => html`<tr key=${key_of(row)} data-row=${first + i} data-to=${to?.(row)} tabindex="-1">${columns.map((c, i) => html`<td key=${c.name} class=${c.class} data-name=${c.name}>${i === 0 && to ? html`<a href=${to(row)} class="id">${c.of(row)}</a>` : c.of(row)}</td>`)}</tr>`)}${space(rows.length - last)}</tbody>
	</table></div>`;
}

// Which of them are shown is part of the address; the first always is.
function Columns({ of, hidden }) {
	const toggle = (name) => {
		const next = new Set(hidden);
		if (!next.delete(name)) next.add(name);
		go_query({ hide: [...next].join(",") });
	};
	return html`<details class="columns-menu"><summary>columns</summary><div>${of.slice(1).map((c) => html`<label key=${c.name}><input type="checkbox" checked=${!hidden.has(c.name)} onChange=${() => toggle(c.name)} /> ${c.name}</label>`)}</div></details>`;
}

// All pages one after the other, as they are at this moment: such a list does not move by itself.
function useAll(wanted, list, parameters) {
	const [state, set] = useState({});
	const asked = wanted ? list + query(parameters) : null;
	useEffect(() => {
		if (!asked) return;
		const aborter = new AbortController();
		(async () => {
			let rows = [], cursor;
			do {
				const page = await get(list + query({ ...parameters, cursor, limit: 500 }), aborter.signal);
				rows = rows.concat(page.items);
				cursor = page.cursor;
				set({ data: { items: rows, cursor, whole: !cursor || rows.length >= ROWS_MAX } });
			} while (cursor && rows.length < ROWS_MAX);
		})().catch((error) => error.name !== "AbortError" && set((before) => ({ ...before, error })));
		return () => aborter.abort();
	}, [asked]);
	return asked ? state : {};
}

// columns: [{ name, of: row => view, class }]; to: row => where its page is.
export function List({ list, parameters = {}, columns, to, empty, name, key_of = (row) => row.id, note }) {
	const { cursor, all, hide } = where().query;
	const whole = useAll(all === "true", list, parameters);
	const page = useLoad(all === "true" ? null : list + query({ ...parameters, cursor }));
	const { data, error } = all === "true" ? whole : page;
	const rows = data?.items || [];
	const plain = !Object.values(parameters).some(Boolean) && !cursor;
	const hidden = new Set((hide || "").split(",").filter(Boolean));
	return html`<${Failure} error=${error} />
		${!data && !error && html`<p class="quiet">…</p>`}
		${data && !rows.length && html`<div class="empty">${plain ? empty : html`<p>Nothing fits this filter.</p><p><a href=${"#/" + where().parts.map(encodeURIComponent).join("/")}>Show all</a></p>`}</div>`}
		${rows.length > 0 && html`<${Rows} rows=${rows} columns=${columns.filter((c, i) => i === 0 || !hidden.has(c.name))} to=${to} key_of=${key_of} />
		<div class="pager">
			<span class="quiet">${grouped(rows.length)}${all === "true" && !data.whole ? "…" : ""} shown${note ? html`, ${note}` : ""}${all === "true" && data.whole && data.cursor ? ", and there are more" : ""}</span>
			${all === "true" && html`<button class="button" onClick=${() => go_query({ all: "" })}>page by page</button>`}
			${cursor && html`<button class="button" onClick=${() => go_query({ cursor: "" })}>first page</button>`}
			${data.cursor && all !== "true" && html`<button class="button" onClick=${() => go_query({ cursor: data.cursor })}>next page</button><button class="button" onClick=${() => go_query({ cursor: "", all: "true" })}>all of them</button>`}
			${columns.length > 2 && html`<${Columns} of=${columns} hidden=${hidden} />`}
			<${Export} list=${list} parameters=${parameters} name=${name} />
		</div>`}`;
}

export const Facts = ({ of }) => html`<dl class="facts">${of.filter(([, value]) => value || value === 0).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export function Page({ title, crumbs, aside, children }) {
	useEffect(() => {
		document.title = (typeof title === "string" ? title + " · " : "") + "hapax";
	});
	return html`<header class="title">
		${crumbs && html`<nav class="crumbs" aria-label="where this is">${crumbs}</nav>`}
		<h1>${title}</h1>${aside && html`<div class="aside">${aside}</div>`}
	</header>${children}`;
}

// A sentence of the engine's, whose times are in UTC.
const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/;
const Said = ({ of }) => of.length > 2000 ? html`<${Long} of=${of} />` : of.split(MOMENT).map((part, i) => (i % 2 ? html`<${Time} of=${part} />` : html`<${Long} of=${part} />`));

// detail: what else is known; said only where the sentence does not say it.
export function Why({ id, detail }) {
	const { data, error } = useLoad(`why/${encodeURIComponent(id)}`);
	return html`${data && html`<p class="why"><${Said} of=${sentence(data.why)} /></p>`}
		${detail && (error || (data && !data.why.includes(detail))) && html`<p class="detail"><${Long} of=${detail} most=${300} /></p>`}`;
}
export const sentence = (words) => (words ? words[0].toUpperCase() + words.slice(1) + "." : "");

// ---- proof -----------------------------------------------------------------------------------------------------
// Each row of a history has the hash of the one before it in its own (src/db/link.h). Reckoned again here, by the browser.

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const ID = /^(?:run|batch|job|sched|op|subject)_([0-9a-hjkmnp-tv-z]{13})$/;
const number_of = (id) => [...ID.exec(id)[1]].reduce((n, c) => n * 32n + BigInt(DIGITS.indexOf(c)), 0n);
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

export async function verify(subject, told) {
	const id = number_of(ID.test(subject) ? subject : (await get(`evidence/${encodeURIComponent(subject)}`)).subject.id);
	let before = new Uint8Array(0), n = 0, cursor, last = null;
	do {
		const page = await get(`history/${encodeURIComponent(subject)}` + query({ limit: 500, cursor }));
		for (const r of page.items) {
			const text = new TextEncoder().encode(`${id}|${r.seq}|${r.from}|${r.to}|${r.version}|${r.fence}|${number_of(r.op)}|${Date.parse(r.time)}|${r.node}`);
			const whole = new Uint8Array(before.length + text.length);
			whole.set(before);
			whole.set(text, before.length);
			before = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
			n++;
			if (r.seq !== n) throw new Error(`Row ${n} is missing.`);
			last = r;
			if (hex(before) !== r.hash) throw new Error(`Row ${n} is not what was written: its hash is another.`);
		}
		told(n);
		cursor = page.cursor;
	} while (cursor);
	if (!last) throw new Error("It has no history.");
	return { n, head: hex(before), last };
}

// All of it as a file, which `hapax audit --bundle` checks without this server. chained: it has a history here.
export function Proof({ subject, chained = true }) {
	const [state, set] = useState({});
	const run = () => {
		set({ busy: "…" });
		verify(subject, (n) => set({ busy: `${grouped(n)} rows…` })).then((good) => set({ good }), (error) => set({ error }));
	};
	const save = async () => {
		set({ busy: "…" });
		try {
			const text = await get_text(`evidence/${encodeURIComponent(subject)}`);
			download(`evidence-${subject.replace(/[^\w.-]+/g, "_").slice(0, 80)}.json`, "application/json", text + "\n");
			set({ saved: parse_json(text).subject.head });
		} catch (error) {
			set({ failed: error });
		}
	};
	return html`<div class="proof">${state.busy ? html`<span class="quiet">${state.busy}</span>` : html`${chained && globalThis.crypto?.subtle && html`<button class="link" onClick=${run}>verify the chain</button>`}<button class="link" onClick=${save}>download the evidence</button>`}
		${state.good && html`<div class="note good" role="status"><strong>It holds.</strong> ${state.good.n === 1 ? "One row is" : `All ${grouped(state.good.n)} rows are`} what was written, in order, up to <code>${state.good.head}</code>.</div>`}
		${state.saved && html`<div class="note good" role="status"><strong>Saved.</strong> Check it with <code>hapax audit --bundle FILE</code>. Its head is <code>${state.saved}</code>: keep that elsewhere.</div>`}
		${state.error && html`<div class="note bad" role="alert"><strong>It does not hold.</strong> <${Long} of=${state.error.message} /></div>`}
		<${Failure} error=${state.failed} /></div>`;
}

export function History({ subject }) {
	const [cursor, set_cursor] = useState(null);
	const { data, error } = useLoad(`history/${encodeURIComponent(subject)}` + query({ limit: 200, cursor }));
	if (error) return html`<${Failure} error=${error} />`;
	if (!data) return null;
	const noted = data.items.some((r) => r.step || r.reason || r.by || r.requester);
	return html`<div class="scroll"><table class="list rows history">
		<thead><tr><th class="n">seq</th><th>time</th><th>change</th><th class="n">version</th><th class="n">fence</th>${noted && html`<th>by</th><th>what</th>`}<th>node</th><th>hash</th></tr></thead>
		<tbody>${data.items.map((r) => html`<tr key=${r.seq} data-row=${r.seq}><td class="n">${r.seq}</td><td><${Time} of=${r.time} /></td>
			<td><${Text} of=${r.from || "–"} /> → <${Text} of=${r.to} /></td><td class="n" data-name="version">${String(r.version)}</td><td class="n" data-name="fence">${String(r.fence)}</td>
			${noted && html`<td data-name="by"><${Text} of=${r.by || r.requester || ""} /></td><td class="wrap">${r.step && html`<code><${Text} of=${r.step} /></code> `}<${Long} of=${r.reason || ""} most=${300} /></td>`}
			<td data-name="node"><${Text} of=${r.node} />${r.worker && html` for <${Text} of=${r.worker} />`}</td><td data-name="hash"><code title=${r.hash}>${r.hash.slice(0, 10)}</code></td></tr>`)}</tbody>
	</table></div>
	<${Proof} subject=${subject} />
	${(cursor || data.cursor) && html`<div class="pager">${cursor && html`<button class="button" onClick=${() => set_cursor(null)}>from the beginning</button>`}${data.cursor && html`<button class="button" onClick=${() => set_cursor(data.cursor)}>later ones</button>`}</div>`}`;
}

// A mistake in one page leaves the others alone.
export class Guard extends Component {
	componentDidCatch(error) {
		this.setState({ error });
	}
	render() {
		return this.state.error ? html`<${Failure} error=${this.state.error} />` : this.props.children;
	}
}
export { command };
