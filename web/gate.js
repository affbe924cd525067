// Records of gates that keep them in this server's store: who sent what under which key, and whose outcome a person has to say.
import { command, html, may, path, session, span, where } from "./lib.js";
import { Actions, Choice, Command, List, Page, Status, Text, Time, Typed } from "./ui.js";

// They are of no workspace: for whoever runs the server.
export const sees_gate = () => may("admin") && (!session.now || session.now.workspace === "default");

function decide(record, outcome) {
	const done = outcome === "done";
	return {
		label: done ? "done" : "not done", title: done ? "it was done" : "it was not done", scope: "admin",
		says: done ? "You have looked into the service, and the request has taken effect. Who sends it again is told that there is no answer to be given." : "You have looked into the service, and the request has not taken effect. The next one under this key is let through.",
		path: path`gate/records/${record.record}/resolve`, body: () => ({ outcome }),
		command: () => command("gate", "resolve", record.key, done ? "--done" : "--not-done", "--record", record.record.slice(0, 16)),
		done: () => (done ? "It is kept as done." : "It is let through."),
	};
}
export const resolve_record = (record) => [decide(record, "done"), decide(record, "not_done")];

const OVER = ["held", "lost"];
const columns = [
	{ name: "key", class: "cut", of: (r) => html`<${Text} of=${r.key} />` },
	{ name: "status", of: (r) => html`<${Status} of=${r.status} />` },
	{ name: "decide", of: (r) => OVER.includes(r.status) && html`<${Actions} of=${resolve_record(r)} label=${`what became of ${r.key}`} />` },
	{ name: "request", class: "cut", of: (r) => html`<${Text} of=${r.endpoint} />` },
	{ name: "gate", of: (r) => html`<${Text} of=${r.gate ?? ""} />` },
	{ name: "tenant", of: (r) => html`<${Text} of=${r.tenant ?? ""} />` },
	{ name: "began", of: (r) => html`<${Time} of=${r.createdAt} />` },
	{ name: "open for", class: "n", of: (r) => (OVER.includes(r.status) ? span(Number(r.openMs)) : "") },
];

export function Records() {
	const { held, key } = where().query;
	if (!sees_gate()) return html`<${Page} title="Gate"><p class="quiet">Records of gates are of no workspace: they are for keys of the workspace <code>default</code> with the scope admin.</p></${Page}>`;
	return html`<${Page} title="Gate" aside=${html`<${Choice} name="held" label="Held" words=${["true"]} value=${held} /><${Typed} name="key" label="Key" value=${key} hint="any" />`}>
		<${List} list="gate/records" name="gate-records" parameters=${{ held, key }} columns=${columns} key_of=${(r) => r.record} note="of gates that keep their records in this store"
			empty=${html`<p class="big">No record of a gate.</p><p>A gate stands in front of a service and lets a request with an <code>Idempotency-Key</code> through once. With its records in the store of this server they are here:</p><${Command} of="hapax gate --upstream URL --store postgres://…" /><p>A gate with a store of its own is asked by <code>hapax gate list</code>.</p>`} />
	</${Page}>`;
}
