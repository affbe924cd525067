// Workflows: those in force; one with its picture and what stands where in it, its versions and what has changed, what check finds.
import { useState } from "./vendor/hooks.js";
import * as act from "./actions.js";
import { command, grouped, html, link, may, path, query, span, where } from "./lib.js";
import { Actions, Age, Command, Data, Difference, Failure, List, Page, Status, Text, Time, useLoad } from "./ui.js";
import { batch_columns, crumb, entity_columns } from "./nouns.js";
import { Explored } from "./explore.js";
import { Picture, useOnce } from "./picture.js";
import { run_columns } from "./runs.js";

export function Workflows() {
	return html`<${Page} title="Workflows"><${List} list="definitions" name="workflows" key_of=${(d) => d.name} to=${(d) => link`workflows/${d.name}`}
		columns=${[{ name: "workflow", class: "cut", of: (d) => html`<${Text} of=${d.name} />` }, { name: "kind", of: (d) => d.kind }, { name: "version", class: "n", of: (d) => String(d.version) }, { name: "steps", class: "n", of: (d) => (d.steps !== undefined ? String(d.steps) : "") }, { name: "module", of: (d) => html`<${Text} of=${d.module ?? ""} />` }]}
		empty=${html`<p class="big">No workflow.</p><p>A folder with a first one, and a server that watches it:</p><${Command} of="hapax init DIR && cd DIR" /><${Command} of="hapax dev" />`} /></${Page}>`;
}

function Newest({ d }) {
	if (d.kind === "run" || d.kind === "function") return html`<section><h2>Runs<a class="more" href=${"#/runs?definitionId=" + encodeURIComponent(d.name)}>all</a></h2><${List} list="workflow-runs" name="runs" parameters=${{ definitionId: d.name, limit: 10 }} columns=${run_columns.filter((c) => c.name !== "workflow")} to=${(r) => link`runs/${r.id}`} empty=${html`<${Command} of=${command("run", "start", d.name)} />`} /></section>`;
	if (d.kind === "batch") return html`<section><h2>Batches<a class="more" href=${"#/batches?workflow=" + encodeURIComponent(d.name)}>all</a></h2><${List} list="batches" name="batches" parameters=${{ workflow: d.name, limit: 10 }} columns=${batch_columns.filter((c) => c.name !== "workflow")} to=${(b) => link`batches/${b.id}`} empty=${html`<${Command} of=${command("batch", "start", d.name, "--account", "ACCOUNT", "--items", "items.json")} />`} /></section>`;
	return html`<section><h2>Entities<a class="more" href=${link`entities/${d.name}`}>all</a></h2><${List} list=${path`entities/${d.name}`} name=${d.name} parameters=${{ limit: 10 }} columns=${entity_columns} to=${(e) => link`entities/${e.workflow}/${e.id}`} empty=${html`<${Command} of=${command("entity", "create", d.name, "ID")} />`} /></section>`;
}

// ---- what stands where -----------------------------------------------------------------------------------------

const OVER = new Set(["COMPLETED", "CANCELLED"]);
// A run that is over stands nowhere; one that has failed stands where it failed.
const stands = (d, row) => row.place !== null && !(d.kind !== "entity" && OVER.has(row.status));
const is_bad = (row) => row.status === "FAILED" || row.outcome !== null;
const oldest = (rows) => rows.map((r) => r.since).sort()[0];
const say = (rows) => rows.map((r) => `${grouped(r.n)} ${r.outcome || r.status}`).join(", ");
const list_of = (d, row) => (d.kind === "entity" ? link`entities/${d.name}` + query({ status: row.status }) : d.kind === "batch" ? "#/batches" + query({ workflow: d.name, status: row.status }) : "#/runs" + query({ definitionId: d.name, status: row.status }));

function Mark({ d, rows }) {
	if (!rows.length) return null;
	const bad = rows.filter(is_bad), rest = rows.filter((r) => !is_bad(r));
	const pill = (tone, of) => of.length > 0 && html`<a class=${"pill " + tone} href=${list_of(d, of[0])} title=${`${say(of)}; the oldest for ${span(Date.now() - Date.parse(oldest(of)))}`}>${grouped(of.reduce((n, r) => n + Number(r.n), 0))}</a>`;
	return html`<span class="pills">${pill("live", rest)}${pill("bad", bad)}</span>`;
}

function Standing({ d, standing }) {
	const rows = standing.items.filter((r) => stands(d, r) || d.kind === "function");
	const places = [...new Set([...standing.took.map((t) => t.place), ...rows.map((r) => r.place)])];
	const what = d.kind === "entity" ? "entities" : d.kind === "batch" ? "batches" : "runs";
	const steps = d.kind === "run";
	return html`<section><h2>What stands where</h2>
		${!places.length && html`<p class="quiet">Nothing stands in it.</p>`}
		${places.length > 0 && html`<div class="scroll"><table class="list"><thead><tr><th>${steps ? "step" : "status"}</th><th>here now</th><th class="n">how many</th><th class="n">the oldest for</th>${steps && html`<th class="n">took on average</th><th class="n">at most</th><th class="n">done</th><th class="n">tried again</th>`}</tr></thead>
		<tbody>${places.flatMap((place) => {
			const here = rows.filter((r) => r.place === place), took = standing.took.find((t) => t.place === place);
			return (here.length ? here : [null]).map((r, i) => html`<tr key=${place + (r ? r.status + r.outcome : "")}><td>${i === 0 && html`<${Text} of=${place ?? "–"} />`}</td><td>${r && html`<a href=${list_of(d, r)}><${Status} of=${r.outcome || r.status} /></a>`}</td><td class="n">${r ? grouped(r.n) : ""}</td><td class="n">${r && html`<${Age} since=${r.since} />`}</td>
				${steps && html`<td class="n">${i === 0 && took ? span(Number(took.averageMs)) : ""}</td><td class="n">${i === 0 && took ? span(Number(took.mostMs)) : ""}</td><td class="n">${i === 0 && took ? grouped(took.n) : ""}</td><td class="n">${i === 0 && took && Number(took.again) ? grouped(took.again) : ""}</td>`}</tr>`);
		})}</tbody></table></div>`}
		<p class="quiet small">${standing.more ? `Of the newest ${grouped(standing.looked)} ${what}.` : `Of all ${grouped(standing.looked)} ${what}.`}${steps ? " Times are of this version, in the newest 1 000 runs." : ""}</p></section>`;
}

// ---- versions --------------------------------------------------------------------------------------------------

function Changed({ name, version, before }) {
	const now = useOnce(path`definitions/${name}` + query({ version })), then = useOnce(path`definitions/${name}` + query({ version: before }));
	if (now.error || then.error) return html`<${Failure} error=${now.error || then.error} />`;
	return now.data && then.data ? html`<${Difference} before=${then.data.definition} after=${now.data.definition} names=${[`version ${before}`, `version ${version}`]} />` : html`<p class="quiet">…</p>`;
}

function Versions({ d, standing }) {
	const { versus } = where().query;
	const open = (v) => standing.items.filter((r) => String(r.version) === String(v) && !OVER.has(r.status) && r.status !== "FAILED").reduce((n, r) => n + Number(r.n), 0);
	return html`<section><h2>Versions</h2><div class="scroll"><table class="list"><thead><tr><th>version</th><th>put</th>${d.kind !== "entity" && html`<th class="n">still open</th>`}<th></th></tr></thead>
		<tbody>${standing.versions.map((v, i) => html`<tr key=${v.version}><td class="left">${String(v.version)}${String(v.version) === String(d.version) ? html` <span class="quiet">in force</span>` : ""}</td><td><${Time} of=${v.createdAt} /></td>${d.kind !== "entity" && html`<td class="n">${grouped(open(v.version))}</td>`}
			<td>${standing.versions[i + 1] && may("admin") && html`<a class="id" href=${link`workflows/${d.name}` + (versus === String(v.version) ? "" : query({ versus: v.version }))}>${versus === String(v.version) ? "hide" : "what has changed"}</a>`}</td></tr>`)}</tbody></table></div>
		${standing.versions.map((v, i) => versus === String(v.version) && standing.versions[i + 1] && html`<${Changed} key=${versus} name=${d.name} version=${v.version} before=${standing.versions[i + 1].version} />`)}
	</section>`;
}

function Findings({ d }) {
	const { data, error } = useOnce(path`definitions/${d.name}/findings`, d.version);
	if (error) return html`<section><h2>What check finds</h2><p class="quiet"><${Text} of=${error.message} /></p></section>`;
	if (!data) return null;
	return html`<section><h2>What check finds</h2>${!data.items.length ? html`<p class="quiet">Nothing.</p>` : html`<div class="scroll"><table class="list"><thead><tr><th></th><th class="n">line</th><th>step</th><th>rule</th><th>what</th></tr></thead><tbody>${data.items.map((f, i) => html`<tr key=${i}><td><span class="status ${f.severity === "error" ? "bad" : "warn"}"><i></i>${f.severity}</span></td><td class="n">${f.line ? String(f.line) : ""}</td><td><${Text} of=${f.step || ""} /></td><td><${Text} of=${f.rule || ""} /></td><td class="wrap"><${Text} of=${f.text} /></td></tr>`)}</tbody></table></div>`}</section>`;
}

export function Workflow({ name }) {
	const { data: all, error } = useLoad("definitions");
	const { data: standing, error: unknown } = useLoad(path`definitions/${name}/standing`, (s) => s.more);
	const d = all?.items.find((x) => x.name === name);
	if (!d) return html`<${Page} title="Workflow" crumbs=${crumb("#/workflows", "Workflows")}><${Failure} error=${error} />${all && html`<div class="empty"><p>No definition of this name is in force. A function needs none: <a href="#/functions">who polls for it</a>, <a href=${"#/runs" + query({ definitionId: name })}>its runs</a>.</p></div>`}</${Page}>`;
	const rows = standing?.items.filter((r) => stands(d, r)) || [];
	return html`<${Page} title=${html`<${Text} of=${name} />`} crumbs=${crumb("#/workflows", "Workflows")} aside=${html`<span class="quiet">${d.kind}, version ${String(d.version)}</span>`}>
		<${Failure} error=${unknown} />
		<${Actions} of=${[d.kind === "run" && act.start_run(name), d.kind === "entity" && act.create_entity(name)]} />
		${d.definition && html`<section><h2>Picture</h2><${Picture} name=${name} version=${d.version} marks=${(place) => html`<${Mark} d=${d} rows=${rows.filter((r) => r.place === place.name)} />`} /></section>`}
		${standing && html`<${Standing} d=${d} standing=${standing} />`}
		<${Newest} d=${d} />
		${standing && html`<${Versions} d=${d} standing=${standing} />`}
		${d.definition && html`<${Findings} d=${d} />`}
		${d.definition && html`<${Explored} key=${d.version} d=${d} />`}
		${d.definition ? html`<section class="columns"><${Data} title="Definition" of=${d.definition} /></section>` : html`<p class="quiet">Its text is for keys with the scope admin.</p>`}
	</${Page}>`;
}
