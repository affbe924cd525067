// What the pages share and nobody sees: JSON with exact numbers, calls of the API, routes in the fragment, words.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

// ---- JSON ------------------------------------------------------------------------------------------------------
// Numbers keep their exact value: one that JavaScript would change is kept as it was written.

export class Exact {
	constructor(text) {
		this.text = text;
	}
	toString() {
		return this.text;
	}
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SPACE = /[ \t\n\r]*/y;

function number(text) {
	const value = Number(text);
	return String(value) === text ? value : new Exact(text);
}

function take(pattern, text, at) {
	pattern.lastIndex = at;
	const found = pattern.exec(text);
	if (!found) throw new SyntaxError(`this is no JSON, at ${at}`);
	return found[0];
}

// Without recursion, since depth is a stranger's choice.
function parse_exact(text) {
	const stack = [];
	let at = 0, root, key;
	const skip = () => (at += take(SPACE, text, at).length);
	const put = (value) => {
		const top = stack[stack.length - 1];
		if (!top) root = value;
		else if (Array.isArray(top)) top.push(value);
		else Object.defineProperty(top, key, { value, enumerable: true, configurable: true, writable: true });
	};
	const keyed = () => {
		skip();
		const raw = take(STRING, text, at);
		key = JSON.parse(raw);
		at += raw.length;
		skip();
		if (text[at++] !== ":") throw new SyntaxError(`a colon is missing, at ${at - 1}`);
	};
	for (;;) {
		skip();
		const c = text[at];
		if (c === "{" || c === "[") {
			const value = c === "{" ? {} : [];
			put(value);
			at++;
			skip();
			if (text[at] !== (c === "{" ? "}" : "]")) {
				stack.push(value);
				if (c === "{") keyed();
				continue;
			}
			at++;
		} else if (c === '"') {
			const raw = take(STRING, text, at);
			put(JSON.parse(raw));
			at += raw.length;
		} else if (c === "t" || c === "f" || c === "n") {
			const word = c === "t" ? "true" : c === "f" ? "false" : "null";
			if (!text.startsWith(word, at)) throw new SyntaxError(`this is no JSON, at ${at}`);
			put(JSON.parse(word));
			at += word.length;
		} else {
			const raw = take(NUMBER, text, at);
			put(number(raw));
			at += raw.length;
		}
		for (;;) {
			const top = stack[stack.length - 1];
			skip();
			if (!top) {
				if (at < text.length) throw new SyntaxError(`something follows, at ${at}`);
				return root;
			}
			const end = Array.isArray(top) ? "]" : "}";
			if (text[at] === end) {
				at++;
				stack.pop();
			} else if (text[at] === ",") {
				at++;
				if (end === "}") keyed();
				break;
			} else {
				throw new SyntaxError(`this is no JSON, at ${at}`);
			}
		}
	}
}

// The browser's own parser is quicker, and right where no number can be changed by it.
const DOUBTFUL = /\d{16}|\d\.\d|\d[eE]|-0/;
export const parse_json = (text) => (DOUBTFUL.test(text) ? parse_exact(text) : JSON.parse(text));

export function write_json(value, indent = "") {
	if (value instanceof Exact) return value.text;
	if (value === null || typeof value !== "object") return JSON.stringify(value);
	const deeper = indent + "  ";
	const parts = Array.isArray(value)
		? value.map((v) => deeper + write_json(v, deeper))
		: Object.keys(value).filter((k) => value[k] !== undefined).map((k) => `${deeper}${JSON.stringify(k)}: ${write_json(value[k], deeper)}`);
	const [open, close] = Array.isArray(value) ? "[]" : "{}";
	return parts.length ? `${open}\n${parts.join(",\n")}\n${indent}${close}` : open + close;
}

// ---- the API ---------------------------------------------------------------------------------------------------

export class Problem extends Error {
	constructor(status, body) {
		super(body.detail || body.title || `HTTP ${status}`);
		this.status = status;
		this.code = body.code || "";
		this.body = body;
	}
}
// The request may have been carried out: nobody knows.
export class Lost extends Error {}

// path`jobs/${id}`: each value is one segment. "." and ".." would be taken for steps in a path by the browser.
export function path(strings, ...values) {
	return strings.reduce((text, piece, i) => {
		const value = values[i - 1];
		if (value === "." || value === "..") throw new Error(`a browser cannot send the name "${value}": use the command line`);
		return text + encodeURIComponent(value) + piece;
	});
}

export function query(parameters) {
	const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
	return pairs.length ? "?" + pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&") : "";
}

const asked = { unauthenticated: () => {} };
export const on_unauthenticated = (fn) => (asked.unauthenticated = fn);

async function call(method, where, headers, body, signal, plain) {
	let answer, text;
	try {
		answer = await fetch("api/v1/" + where, { method, headers, body, signal, cache: "no-store", redirect: "error", credentials: "same-origin" });
		text = await answer.text();
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new Lost("the server cannot be reached");
	}
	if (answer.status === 401) asked.unauthenticated();
	let value;
	try {
		value = parse_json(text);
	} catch {
		throw answer.ok ? new Lost("what answers is no hapax server") : new Problem(answer.status, {});
	}
	if (!answer.ok) throw new Problem(answer.status, value || {});
	return plain ? text : value;
}

// What will be asked for in a moment can be on its way already; it is taken once. What failed, or was asked before somebody
// logged in, is asked again.
const ahead = new Map();
export function look_ahead(where) {
	const answer = call("GET", where, { Accept: "application/json" });
	ahead.set(where, answer);
	answer.catch(() => ahead.delete(where));
}
export function get(where, signal) {
	const answer = ahead.get(where);
	ahead.delete(where);
	return answer || call("GET", where, { Accept: "application/json" }, undefined, signal);
}
// As it came, byte by byte: evidence is sealed so.
export const get_text = (where) => call("GET", where, { Accept: "application/json" }, undefined, undefined, true);
// One key for one intention: pressed twice, or sent again after a lost answer, it is done once.
export const send = (method, where, body, key) =>
	call(method, where, { "Content-Type": "application/json", "Idempotency-Key": key }, body === undefined ? undefined : write_json(body));

// Who asks: { workspace, requester, scope, open, version, node }.
export const session = { now: null };
const RANKS = ["read", "execute", "admin"];
export const may = (scope) => !session.now || RANKS.indexOf(session.now.scope) >= RANKS.indexOf(scope);
export async function who() {
	session.now = await get("session");
	return session.now;
}
// The key is sent once, and not kept here: the browser gets a cookie for it that no script can read.
export async function log_in(key) {
	session.now = await call("POST", "session", { Authorization: "Bearer " + key });
	ahead.clear();
}
export async function log_out() {
	await call("DELETE", "session", {});
	session.now = null;
}

export function fresh_key() {
	const bytes = crypto.getRandomValues(new Uint8Array(16));
	return "dashboard-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// ---- where we are ----------------------------------------------------------------------------------------------
// #/runs/run_x?tab=history: under whatever prefix, and the server need not know of it.

export function where() {
	const [way, search = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
	let parts;
	try {
		parts = way.split("/").filter(Boolean).map(decodeURIComponent);
	} catch {
		parts = ["nowhere"];
	}
	return { parts, query: Object.fromEntries(new URLSearchParams(search)) };
}
export const link = (strings, ...values) =>
	"#/" + strings.reduce((text, piece, i) => text + encodeURIComponent(values[i - 1]) + piece);
export function go(to) {
	location.hash = to;
}
// This place, with other parameters.
export function here(changes) {
	const now = where();
	return "#/" + now.parts.map(encodeURIComponent).join("/") + query({ ...now.query, ...changes });
}
export const go_query = (changes) => go(here(changes));
// Where a subject has its page; null: nowhere.
export function home_of(id) {
	if (/^run_[0-9a-z]{13}$/.test(id)) return link`runs/${id}`;
	if (/^batch_[0-9a-z]{13}$/.test(id)) return link`batches/${id}`;
	if (/^job_[0-9a-z]{13}$/.test(id)) return link`jobs/${id}`;
	const [, workflow, name] = /^entity:([^:]+):(.+)$/s.exec(id) || [];
	return workflow ? link`entities/${workflow}/${name}` : null;
}

// ---- words -----------------------------------------------------------------------------------------------------

export function sh(word) {
	const text = String(word);
	return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
export const command = (...words) => ["hapax", ...words.filter((w) => w !== undefined && w !== null).map(sh)].join(" ");

const UNITS = [["d", 86400e3], ["h", 3600e3], ["m", 60e3], ["s", 1e3]];
// Two units are enough to know what is meant: "3 h 12 m", "1.2 s".
export function span(ms) {
	if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
	if (ms < 0) return "in " + span(-ms);
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 10e3) return `${(ms / 1e3).toFixed(1)} s`;
	const i = UNITS.findIndex(([, unit]) => ms >= unit);
	const [name, unit] = UNITS[i];
	const rest = UNITS[i + 1] ? Math.floor((ms % unit) / UNITS[i + 1][1]) : 0;
	return `${Math.floor(ms / unit)} ${name}` + (rest ? ` ${rest} ${UNITS[i + 1][0]}` : "");
}
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const dated = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
export function local(time) {
	const at = new Date(time), today = new Date();
	const hour = clock.format(at);
	if (at.toDateString() === today.toDateString()) return hour;
	return (at.getFullYear() === today.getFullYear() ? day : dated).format(at) + ", " + hour;
}
export const count = (n, one, many = one + "s") => `${grouped(n)} ${String(n) === "1" ? one : many}`;
export const grouped = (n) => String(n).replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"));
