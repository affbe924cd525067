// What `hapax explore` says of a workflow, asked for here: how it can be broken, line by line, what would help, what was covered.
import { useState } from "./vendor/hooks.js";
import { fresh_key, grouped, html, may, path, send } from "./lib.js";
import { Command, Failure, Text } from "./ui.js";

const said = new Map(); // by name and version: it says the same of the same, and is not asked again for who comes back

function Found({ f }) {
	return html`<div class="note bad" role="status"><strong>${f.rule}</strong> <${Text} of=${f.broken} />${f.why && html`<br /><${Text} of=${`${f.line ? `line ${f.line}: ` : ""}${[f.step && `step ${f.step}`, f.field, f.why].filter(Boolean).join(", ")}`} />`}</div>
		<div class="scroll"><table class="list story"><thead><tr><th class="n"></th><th>who</th><th>what</th><th class="n">line</th></tr></thead>
		<tbody>${f.story.map((e, i) => html`<tr key=${i}><td class="n">${String(i + 1)}</td><td><${Text} of=${e.who} /></td><td class="wrap"><${Text} of=${e.what} /></td><td class="n">${e.line ? String(e.line) : ""}</td></tr>`)}</tbody></table></div>`;
}

const VERDICTS = { complete: ["good", "Nothing was found.", "Every schedule within these bounds was walked. That is no proof of what is outside of them."], bounded: ["warn", "Nothing was found in this time.", "There are more schedules than could be walked."] };

function Report({ of: r }) {
	const verdict = VERDICTS[r.verdict], missed = r.covered.filter((c) => !c.reached || c.notSeen.length), unseen = r.covered.filter((c) => !c.reached).length;
	return html`${r.found && html`<${Found} f=${r.found} />`}
		${verdict && html`<div class="note ${unseen ? "warn" : verdict[0]}" role="status"><strong>${verdict[1]}</strong> ${verdict[2]}${unseen > 0 && ` But ${unseen} of ${r.covered.length} steps and calls were never reached, so this says nothing of them: name inputs that lead there, in the definition: "world": {"inputs": [ … ]}.`}</div>`}
		${(r.tried || []).map((t, i) => html`<p key=${i}><strong>Tried:</strong> <${Text} of=${`${t.change}, ${t.where}${t.line ? ` (line ${t.line})` : ""}: explored again, nothing was found${t.provided ? `; provided that ${t.provided}` : ""}.`} /></p>`)}
		<p class="quiet small">${grouped(r.states)} states, ${grouped(r.edges)} edges, ${grouped(r.crashPoints)} crash points; ${r.bounds.nodes} nodes, ${r.bounds.callers} callers, at most ${r.bounds.mishaps} mishaps.
			${missed.length > 0 && html` Not reached: <${Text} of=${missed.map((c) => `${c.step}${c.calls ? ` ${c.calls}` : ""}${c.reached ? ` (${c.notSeen.join(", ")})` : ""}`).join("; ")} />.`}
			${r.leftOut.map((words, i) => html`<br key=${i} /><${Text} of=${`Left out: ${words}.`} />`)}</p>`;
}

export function Explored({ d }) {
	const which = `${d.name}@${d.version}`, [state, set] = useState({});
	const report = said.get(which);
	if (!may("admin") || d.kind === "function") return null;
	const ask = async () => {
		set({ busy: true });
		try {
			said.set(which, await send("POST", path`definitions/${d.name}/explore` + "?for=10s", {}, fresh_key()));
			set({});
		} catch (error) {
			set({ error });
		}
	};
	return html`<section class="explored"><h2>Explore</h2>
		<p class="quiet">Looks for a way to break this version: a crash, a lost answer, two clicks, in every order within a bound. It is done aside, and takes ten seconds at most.</p>
		<div class="row"><button class="button" disabled=${state.busy} onClick=${ask}>${state.busy ? "…" : report ? "explore again" : "explore"}</button></div>
		<${Failure} error=${state.error} />
		${report ? html`<${Report} of=${report} />` : html`<${Command} of="hapax explore FILE" />`}
	</section>`;
}
