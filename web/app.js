// The frame: where we are, what is around it, the keyboard.
import { render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { Lost, go, home_of, html, log_in, log_out, look_ahead, on_unauthenticated, session, where, who } from "./lib.js";
import { Failure, Guard, Roll, go_live, live, pause, reload_all, useLoad } from "./ui.js";
import { INBOX, Inbox } from "./inbox.js";

// Where one can go, in groups; the letter after g.
const GROUPS = [[["", "Inbox", "i"]], [["runs", "Runs", "u"], ["entities", "Entities", "e"], ["batches", "Batches", "b"], ["jobs", "Jobs", "o"], ["accounts", "Accounts", "a"]],
	[["workflows", "Workflows", "w"], ["functions", "Functions", "f"], ["schedules", "Schedules", "s"], ["gate", "Gate", "t"]], [["bulk", "Bulk", "l"], ["proof", "Proof", "p"], ["health", "Health", "h"]]];
const PLACES = GROUPS.flat();

// ---- pages -----------------------------------------------------------------------------------------------------
// Home is here with the frame. The others come when they are wanted, or when there is nothing else to do.

const one = (many, single) => (m, first) => (first ? html`<${m[single]} key=${first} id=${first} name=${first} />` : html`<${m[many]} />`);
const PAGES = {
	runs: ["./runs.js", one("Runs", "Run")], batches: ["./nouns.js", one("Batches", "Batch")], jobs: ["./nouns.js", one("Jobs", "Job")], accounts: ["./nouns.js", one("Accounts", "Account")],
	schedules: ["./nouns.js", one("Schedules", "Schedule")], workflows: ["./workflows.js", one("Workflows", "Workflow")], bulk: ["./bulk.js", one("Bulks", "Bulk")],
	functions: ["./nouns.js", (m) => html`<${m.Functions} />`], gate: ["./gate.js", (m) => html`<${m.Records} />`], proof: ["./proof.js", (m) => html`<${m.Audit} />`], health: ["./health.js", (m) => html`<${m.Health} />`],
	entities: ["./nouns.js", (m, first, second) => (second ? html`<${m.Entity} key=${first + "/" + second} workflow=${first} id=${second} />` : first ? html`<${m.Entities} workflow=${first} />` : html`<${m.EntityKinds} />`)],
};
const modules = new Map();
const bring = async (file) => modules.get(file) || modules.set(file, await import(file)).get(file);
const bring_all = () => Object.values(PAGES).forEach(([file]) => bring(file).catch(() => {}));

function Place({ parts: [noun = "", ...rest] }) {
	const [, draw] = useState(0);
	const [error, fail] = useState(null);
	const [file, page] = PAGES[noun] || [];
	useEffect(() => {
		if (file) bring(file).then(() => draw((n) => n + 1), () => fail(new Lost("this page could not be loaded: reload it")));
	}, [file]);
	if (noun === "") return html`<${Inbox} />`;
	if (!file) return html`<div class="empty"><p class="big">There is no such page.</p><p><a href="#/">To the inbox</a></p></div>`;
	return error ? html`<${Failure} error=${error} />` : modules.has(file) ? page(modules.get(file), ...rest) : null;
}

// ---- keyboard --------------------------------------------------------------------------------------------------

const KEYS = [["/", "go to an id or entity:WORKFLOW:ID, or find the run of a key"], ["j  k", "next, previous row"], ["Enter", "open the row"], ["r", "read everything again"], ["Esc", "close what is open"], ...PLACES.map(([, name, key]) => [`g ${key}`, name]), ["?", "this"]];

function step_row(by) {
	const rows = [...document.querySelectorAll("tr[data-to], article.item")];
	if (!rows.length) return;
	const at = rows.indexOf(document.activeElement.closest?.("tr[data-to], article.item"));
	const row = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
	row.focus();
	row.scrollIntoView({ block: "nearest" });
}

function useKeys(set_help) {
	useEffect(() => {
		let after_g = 0;
		const on = (event) => {
			if (event.key === "Escape") set_help(false);
			if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
			const key = event.key;
			if (Date.now() - after_g < 1500) {
				const place = PLACES.find(([, , k]) => k === key);
				after_g = 0;
				if (place) go("#/" + place[0]);
				return;
			}
			if (key === "g") after_g = Date.now();
			else if (key === "/") document.getElementById("search").focus();
			else if (key === "j") step_row(1);
			else if (key === "k") step_row(-1);
			else if (key === "r") reload_all();
			else if (key === "?") set_help((open) => !open);
			else if (key === "Enter" && event.target.matches("tr[data-to]")) go(event.target.dataset.to);
			else return;
			event.preventDefault();
		};
		addEventListener("keydown", on);
		return () => removeEventListener("keydown", on);
	}, []);
}

const Help = ({ close }) => html`<div class="help" role="dialog" aria-label="keys" onClick=${close}><div onClick=${(e) => e.stopPropagation()}><h2>Keys</h2><dl>${KEYS.map(([key, words]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${words}</dd></div>`)}</dl><button class="button" onClick=${close}>close</button></div></div>`;

// ---- the frame -------------------------------------------------------------------------------------------------

function Search() {
	const submit = (event) => {
		event.preventDefault();
		const text = event.target.elements.q.value.trim();
		if (!text) return;
		go(home_of(text) || "#/runs?where=" + encodeURIComponent(`key == ${JSON.stringify(text)}`));
		event.target.reset();
		document.activeElement.blur();
	};
	return html`<form class="search" role="search" onSubmit=${submit}><input id="search" name="q" placeholder="id or key" aria-label="go to an id, or find the run of a key" autocomplete="off" spellcheck="false" onKeyDown=${(e) => e.key === "Escape" && e.target.blur()} /><kbd>/</kbd></form>`;
}

const LIVE_WORDS = { waiting: "connecting", live: "live", lost: "connection lost" };
function Live() {
	const [, draw] = useState(0);
	useEffect(() => {
		live.on = () => draw((n) => n + 1);
		live.on();
	}, []);
	const words = live.state === "lost" ? LIVE_WORDS.lost : live.paused ? "paused" : LIVE_WORDS[live.state];
	return html`<button class="live ${live.state === "lost" ? "lost" : live.paused ? "paused" : live.state}" aria-live="polite" title=${live.paused ? "let changes appear again" : "stop changes from appearing"} onClick=${() => pause(!live.paused)}><i></i>${words}</button>`;
}

function Waiting() {
	const { data } = useLoad("attention?limit=100");
	const n = data?.items.length || 0;
	return n ? html`<span class="badge" aria-label=${`${n} wait`}><${Roll} of=${data?.cursor ? "100+" : n} /></span>` : null;
}

// The key stays in this field until it is sent, and nowhere else.
function Login({ again, entered }) {
	const [said, say] = useState("");
	const submit = async (event) => {
		event.preventDefault();
		const field = event.target.elements.key;
		const key = field.value.trim();
		if (!/^hx_[0-9a-z_]+$/.test(key)) {
			say("A key begins with hx_. hapax key create makes one, and shows it once.");
			return;
		}
		try {
			await log_in(key);
			field.value = "";
			entered();
		} catch (error) {
			say(error.message);
		}
	};
	return html`<div class="login"><form class="panel" onSubmit=${submit}>
		<h1>${again ? "You are logged out" : "Log in"}</h1>
		<p class="quiet">${again ? "The key was revoked, or the session is over." : "This server wants an API key."} It is exchanged for a cookie that no script can read, and that ends with the key, or after 12 hours.</p>
		<div class="fields"><label for="key">API key</label><input id="key" name="key" type="password" autocomplete="current-password" spellcheck="false" placeholder="hx_…" /></div>
		${said && html`<div class="note bad" role="alert">${said}</div>`}
		<div class="row"><button class="button primary">log in</button></div>
	</form></div>`;
}

function Who({ left }) {
	const now = session.now;
	if (!now || (now.open && now.workspace === "default")) return null;
	const leave = async () => {
		await log_out().catch(() => {});
		left();
	};
	return html`<div class="who"><span title="workspace, requester, scope">${now.workspace} · ${now.requester} · ${now.scope}</span>${!now.open && html`<button class="link" onClick=${leave}>log out</button>`}</div>`;
}

function App() {
	const [at, set_at] = useState(where());
	const [help, set_help] = useState(false);
	const [state, set_state] = useState("asking"); // asking, in, out (never was in), over (was in)
	const main = useRef(null);
	useEffect(() => {
		const page = ({ parts, query } = where()) => parts.join("/") + (query.cursor || "");
		let seen = page();
		const on = () => {
			set_at(where());
			if (page() !== seen) scrollTo(0, 0); // a filter, or what is open, leaves the eye where it is
			seen = page();
		};
		addEventListener("hashchange", on);
		on_unauthenticated(() => set_state((before) => (before === "in" || before === "over" ? "over" : "out")));
		who().then(() => set_state("in"), (error) => set_state(error.status === 401 ? "out" : "in"));
		return () => removeEventListener("hashchange", on);
	}, []);
	useEffect(() => {
		if (state === "in" && !live.begun) {
			live.begun = true;
			go_live();
		}
	}, [state]);
	useKeys(set_help);
	const here = at.parts[0] || "";
	useEffect(() => document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [here]);
	return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>to the page</a>
		<aside class="side"><div>
			<a class="mark" href="#/"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" /><path d="M10 7v18M10 17c2-4 12-5 12 2v6" /></svg>hapax</a>
			<nav aria-label="places">${GROUPS.map((group, i) => html`<div key=${i}>${group.map(([way, name]) => html`<a key=${way} href=${"#/" + way} aria-current=${here === way ? "page" : undefined}>${name}${way === "" && state === "in" && html`<${Waiting} />`}</a>`)}</div>`)}</nav>
			<${Search} />
			${state === "in" && html`<${Live} />`}
			${state === "in" && html`<${Who} left=${() => set_state("out")} />`}
			<button class="link keys" onClick=${() => set_help(true)}>keys <kbd>?</kbd></button>
		</div></aside>
		<main id="main" ref=${main} tabindex="-1">${(state === "out" || state === "over") && html`<${Login} again=${state === "over"} entered=${() => set_state("in")} />`}${state === "in" && html`<${Guard} key=${at.parts.join("/")}><${Place} parts=${at.parts} /></${Guard}>`}</main>
		${help && html`<${Help} close=${() => set_help(false)} />`}`;
}

// Beside each other, and not one after the other: who asks, what the inbox has, and the page that is wanted.
look_ahead("session");
const [first] = where().parts;
if (!first) look_ahead(INBOX);
else if (PAGES[first]) bring(PAGES[first][0]).catch(() => {});
setTimeout(() => (window.requestIdleCallback || setTimeout)(bring_all), 500);
render(html`<${App} />`, document.getElementById("app"));
