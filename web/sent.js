// What a call in doubt has sent, under which key, and what its probe says now: for whoever has to say what became of it.
import { useState } from "./vendor/hooks.js";
import { command, fresh_key, html, may, path, send } from "./lib.js";
import { Copy, Failure, Json, Text, Time, useLoad } from "./ui.js";

const SAYS = { done: ["good", "The probe says that it was done."], not_done: ["warn", "The probe says that it was not done."], unknown: ["bad", "The probe does not know."] };

function Probe({ where, words }) {
	const [state, set] = useState({});
	const ask = async () => {
		set({ busy: true });
		try {
			set({ said: await send("POST", where, {}, fresh_key()), at: new Date().toISOString() });
		} catch (error) {
			set({ error });
		}
	};
	const [tone, told] = SAYS[state.said?.outcome] || [];
	return html`<button class="link" disabled=${state.busy} title=${words} onClick=${ask}>${state.busy ? "asking…" : state.said ? "ask again" : "ask the probe"}</button>
		${state.said && html`<div class="note ${tone}" role="status"><strong>${told}</strong> <span class="quiet">Asked <${Time} of=${state.at} />; nothing is decided by it.</span>${state.said.detail && html` <${Text} of=${state.said.detail} />`}${state.said.outcome === "done" && state.said.output !== null && html`<div class="json"><${Json} of=${state.said.output} /></div>`}</div>`}
		<${Failure} error=${state.error} />`;
}

// Of a function: its steps are code, and so is what asks about them.
function OfCode({ id, step }) {
	const [name, n = "0"] = step.split(/#(\d+)$/);
	const key = `${id}/${encodeURIComponent(name)}/${n}`;
	return html`<p class="sent quiet">A step of a function is code: what it has sent, and what its probe would say, only its worker can tell. Look into the service, under the key <code><${Text} of=${key} /></code><${Copy} text=${() => key} /></p>`;
}

// of: the path of the run, of the entity, of the item, of the job; asks: the words of the command that asks its probe.
export function Sent({ of, step, id, asks }) {
	const [open, set] = useState(false);
	const { data } = useLoad(/^jobs/.test(of) ? of : `${of}/sent`);
	if (data?.function) return html`<${OfCode} id=${id} step=${step} />`;
	const key = data?.idempotencyKey ?? data?.key, body = data?.payload ?? data?.body;
	if (!key || (step && data.step !== step)) return null;
	return html`<div class="sent"><span class="quiet">${data.startedAt ? html`Sent <${Time} of=${data.startedAt} /> with ` : "Sent with "}</span><code>Idempotency-Key: <${Text} of=${key} /></code><${Copy} text=${() => key} />${data.attempt > 1 && html`<span class="quiet">attempt ${String(data.attempt)}</span>`}
		<button class="link" aria-expanded=${open} onClick=${() => set(!open)}>${open ? "hide what was sent" : "what was sent"}</button>
		${data.probe ? may("execute") && html`<${Probe} where=${of + (step ? path`/steps/${step}` : "") + "/probe"} words=${command(...asks)} />` : data.probe === false && html`<span class="quiet">Its action declares no probe to ask.</span>`}
		${open && html`<div class="json"><${Json} of=${body} /></div>`}</div>`;
}
