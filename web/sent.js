// What a call in doubt has sent, under which key, and what its probe says now: for whoever has to say what became of it.
import { useState } from "./vendor/hooks.js";
import { fresh_key, html, may, path, send } from "./lib.js";
import { Copy, Failure, Json, Text, Time, useLoad } from "./ui.js";

const SAYS = { done: ["good", "The probe says that it was done."], not_done: ["warn", "The probe says that it was not done."], unknown: ["bad", "The probe does not know."] };

function Probe({ of, step }) {
	const [state, set] = useState({});
	const ask = async () => {
		set({ busy: true });
		try {
			set({ said: await send("POST", `${of}/${path`steps/${step}/probe`}`, {}, fresh_key()), at: new Date().toISOString() });
		} catch (error) {
			set({ error });
		}
	};
	const [tone, words] = SAYS[state.said?.outcome] || [];
	return html`<button class="link" disabled=${state.busy} onClick=${ask}>${state.busy ? "asking…" : state.said ? "ask again" : "ask the probe"}</button>
		${state.said && html`<div class="note ${tone}" role="status"><strong>${words}</strong> <span class="quiet">Asked <${Time} of=${state.at} />; nothing is decided by it.</span>${state.said.detail && html` <${Text} of=${state.said.detail} />`}${state.said.outcome === "done" && state.said.output !== null && html`<div class="json"><${Json} of=${state.said.output} /></div>`}</div>`}
		<${Failure} error=${state.error} />`;
}

// of: the path of the run, or of the entity.
export function Sent({ of, step }) {
	const [open, set] = useState(false);
	const { data } = useLoad(`${of}/sent`);
	if (!data?.key || data.step !== step) return null;
	return html`<div class="sent"><span class="quiet">${data.startedAt ? html`Sent <${Time} of=${data.startedAt} /> with ` : "Sent with "}</span><code>Idempotency-Key: <${Text} of=${data.key} /></code><${Copy} text=${() => data.key} />${data.attempt > 1 && html`<span class="quiet">attempt ${String(data.attempt)}</span>`}
		<button class="link" aria-expanded=${open} onClick=${() => set(!open)}>${open ? "hide what was sent" : "what was sent"}</button>
		${data.probe && may("execute") && html`<${Probe} of=${of} step=${step} />`}
		${open && html`<div class="json"><${Json} of=${data.body} /></div>`}</div>`;
}
