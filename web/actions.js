// What can be done about a thing, as the API and the command line have it. Each carries the version that was seen.
import { command, path } from "./lib.js";
import { REASON, json_of, reason_of } from "./ui.js";

const seen = (of) => (of.version ? { version: of.version } : {});
const flags = (of, form) => [...(of.version ? ["--version", of.version] : []), ...(form.reason?.trim() ? ["--reason", form.reason.trim()] : [])];
const OUTPUT = { name: "output", label: "Output", hint: "what it gave back, as JSON; empty: null", lines: 2 };

function move(run, verb, says, extra = {}) {
	return {
		label: verb, says, path: path`workflow-runs/${run.id}/${verb}`, fields: [REASON],
		body: (form) => ({ ...seen(run), ...reason_of(form) }),
		command: (form) => command("run", verb, run.id, ...flags(run, form)), ...extra,
	};
}
export const retry_run = (run) => move(run, "retry", "The step that failed is tried again, with all its attempts.");
export const retry_undo = (run) => move(run, "retry", "The compensation that failed is tried again.");
export const cancel_run = (run) => move(run, "cancel", "The run stops, and what its steps have done is undone in reverse order.", { tone: "danger", title: "cancel the run" });
export const pause_run = (run) => move(run, "pause", "The step under way ends, and no other is begun.");
export const resume_run = (run) => move(run, "resume", "The run goes on where it was.");

export function restart_run(run) {
	return {
		label: "restart", says: "A new run goes on in the place of this one, from a step on. What was completed before that step passes to it.",
		path: path`workflow-runs/${run.id}/restart`,
		fields: [{ name: "from", label: "From step", hint: run.currentStep || run.steps?.[0]?.name, initial: run.currentStep || run.steps?.[0]?.name },
			{ name: "input", label: "Input", hint: "another input, as JSON; empty: as it was", lines: 3 }],
		body: (form) => ({ from: form.from, input: json_of(form, "input", true) }),
		command: (form) => command("run", "restart", run.id, "--from", form.from, ...(form.input?.trim() ? ["--input", form.input.trim()] : [])),
		done: (answer) => `${answer.id} goes on in its place.`,
	};
}

export const signal_run = (run, event = "") => ({
	label: "signal", title: "send the event", says: "An event that a step of the run waits for, or will wait for. The same id again changes nothing.",
	path: (form) => path`workflow-runs/${run.id}/events/${form.event.trim()}`,
	fields: [{ name: "event", label: "Event", initial: event }, { name: "id", label: "Id", hint: "of the event; empty: a fresh one", most: 255 }, { name: "data", label: "Data", hint: "JSON; empty: null", lines: 3 }],
	body: (form) => {
		if (!form.event.trim()) throw new Error("the event has a name");
		return { id: form.id.trim() || undefined, data: json_of(form, "data") };
	},
	command: (form) => command("run", "signal", run.id, form.event?.trim() || "EVENT", ...(form.id?.trim() ? ["--id", form.id.trim()] : []), ...(form.data?.trim() ? ["--data", form.data.trim()] : [])),
	done: (answer) => (answer.duplicate ? "It was there already: nothing was done." : "It is there."),
});

function decide(run, step, decision) {
	return {
		label: decision, tone: decision === "reject" ? "danger" : "primary",
		says: decision === "approve" ? "The run goes on." : "The run fails at this step.",
		path: path`workflow-runs/${run.id}/approvals/${step}`, fields: [{ name: "comment", label: "Comment", hint: "goes into the step's output", most: 4000 }],
		body: (form) => ({ decision, ...seen(run), ...(form.comment.trim() ? { comment: form.comment.trim() } : {}) }),
		command: (form) => command("run", "approve", run.id, step, decision === "reject" ? "--reject" : null, ...(form.comment?.trim() ? ["--comment", form.comment.trim()] : []), ...(run.version ? ["--version", run.version] : [])),
	};
}
export const decide_approval = (run, step) => [decide(run, step, "approve"), decide(run, step, "reject")];

function resolve(of, where, words, outcome, says) {
	return {
		label: outcome === "done" ? "done" : "not done", title: outcome === "done" ? "it was done" : "it was not done", says,
		path: where, fields: outcome === "done" ? [OUTPUT, REASON] : [REASON],
		body: (form) => ({ outcome, ...seen(of), output: outcome === "done" ? json_of(form, "output") : undefined, ...reason_of(form) }),
		command: (form) => command(...words, outcome, ...(outcome === "done" && form.output?.trim() ? ["--output", form.output.trim()] : []), ...flags(of, form)),
		done: (answer) => `It is ${(answer.entity || answer).status} now.`,
	};
}
export function resolve_step(run, step) {
	const where = path`workflow-runs/${run.id}/steps/${step}/resolve`, words = ["run", "resolve", run.id, step];
	return [
		resolve(run, where, words, "done", "You have looked, and the step has taken effect. The run goes on after it."),
		resolve(run, where, words, "not_done", "You have looked, and the step has not taken effect. It is begun anew, under the same key."),
	];
}
export function resolve_claim(entity, step) {
	const where = path`entities/${entity.workflow}/${entity.id}/steps/${step}/resolve`, words = ["entity", "resolve", entity.workflow, entity.id, step];
	return [
		resolve(entity, where, words, "done", "You have looked, and the step has taken effect. The entity goes on to where the step leads."),
		resolve(entity, where, words, "not_done", "You have looked, and the step has not taken effect. The claim is given back."),
	];
}
export function resolve_item(batch, n) {
	const where = path`batches/${batch.id}/items/${n}/resolve`, words = ["batch", "resolve", batch.id, n];
	const plain = (action) => ({ ...action, fields: action.fields.filter((f) => f !== REASON), body: (form) => ({ outcome: action.label === "done" ? "done" : "not_done", output: action.label === "done" ? json_of(form, "output") : undefined }) });
	return [
		plain(resolve({}, where, words, "done", "You have looked, and the item is there. It stays charged.")),
		plain(resolve({}, where, words, "not_done", "You have looked, and the item is not there. It has failed, and what it was charged goes back.")),
	];
}

export const redrive_job = (job) => ({
	label: "redrive", says: "The job gets another try, with the same key.", path: path`jobs/${job.id}/redrive`, body: () => undefined,
	command: () => command("job", "redrive", job.id),
});

export const accept_item = (batch, n) => ({
	label: "accept", says: "The item is kept, also when the batch is cancelled later.", path: path`batches/${batch.id}/items/${n}/accept`,
	command: () => command("batch", "accept", batch.id, n), done: () => "It is accepted.",
});
export const start_batch = (batch) => ({
	label: "start", says: "The batch is held, and starts now. No item can be added after that.", path: path`batches/${batch.id}/start`, command: () => command("batch", "start", batch.id),
});
// With nothing accepted, what is charged now is what is given back now.
export function cancel_batch(batch) {
	const paid = BigInt(batch.charged) - BigInt(batch.refunded);
	const sum = String(paid).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
	const money = paid === 0n ? "Nothing was charged, and nothing is refunded." : batch.accepted ? `Up to ${sum} goes back to ${batch.account}: what its items were charged that nobody has accepted.` : `${sum} goes back to ${batch.account}: all that is charged at this moment.`;
	return {
		label: "cancel", title: "cancel the batch", tone: "danger", says: `No further item is begun, and what undecided items have made is deleted. ${money}`,
		path: path`batches/${batch.id}/cancel`, command: () => command("batch", "cancel", batch.id),
		done: (answer) => (answer.status === "ACCEPTED" ? "It is accepted, and torn down at the next item." : `It is ${answer.status} now.`),
	};
}

export const start_run = (workflow) => ({
	label: "start a run", tone: "primary", says: "The same key again is the same run.", path: "workflow-runs",
	fields: [{ name: "key", label: "Key", hint: "one run for this key; empty: none", most: 255 }, { name: "input", label: "Input", hint: "an object, as JSON; empty: {}", lines: 4 }],
	body: (form) => ({ definitionId: workflow, input: json_of(form, "input", true), idempotencyKey: form.key.trim() || undefined }),
	command: (form) => command("run", "start", workflow, ...(form.key?.trim() ? ["--key", form.key.trim()] : []), ...(form.input?.trim() ? ["--input", form.input.trim()] : [])),
	done: (answer) => `${answer.run.id} ${answer.created ? "is started." : "was started before with this key."}`,
});

export const fire_step = (entity, step) => ({
	label: step, title: `fire ${step}`, says: `Fires the step, and answers when it is done.`, path: path`entities/${entity.workflow}/${entity.id}/steps/${step}`,
	fields: [{ name: "input", label: "Input", hint: "for the action, as JSON; empty: null", lines: 3 }],
	body: (form) => ({ input: json_of(form, "input"), version: entity.version }),
	command: (form) => command("entity", "fire", entity.workflow, entity.id, step, ...(form.input?.trim() ? ["--input", form.input.trim()] : []), "--version", entity.version),
	done: (answer) => `It is ${answer.entity.status} now.`,
});

export const create_entity = (workflow) => ({
	label: "create an entity", tone: "primary", says: "It begins in the first status of its workflow.", path: path`entities/${workflow}`,
	fields: [{ name: "id", label: "Id", hint: "empty: it gets one", most: 255 }, { name: "data", label: "Data", hint: "JSON; empty: {}", lines: 3 }],
	body: (form) => ({ id: form.id.trim() || undefined, data: json_of(form, "data") }),
	command: (form) => command("entity", "create", workflow, form.id?.trim() || null, ...(form.data?.trim() ? ["--data", form.data.trim()] : [])),
	done: (answer) => `${answer.id} is there.`,
});

export const credit_account = (account) => ({
	label: "credit", scope: "admin", says: "The same key and amount again changes nothing.", path: path`accounts/${account.id}/credit`,
	fields: [{ name: "amount", label: "Amount", hint: "of the smallest unit" }, { name: "key", label: "Key", hint: "names this payment", most: 255 }],
	body: (form) => {
		if (!/^[1-9]\d{0,15}$/.test(form.amount.trim())) throw new Error("the amount is a whole number");
		if (!form.key.trim()) throw new Error("a key is needed: it is what makes it happen once");
		return { amount: Number(form.amount.trim()), key: form.key.trim() };
	},
	command: (form) => command("account", "credit", account.id, form.amount?.trim() || "AMOUNT", "--key", form.key?.trim() || "KEY"),
	done: (answer) => (answer.duplicate ? "It was credited before: nothing was done." : `The balance is ${answer.balance} now.`),
});

function schedule_verb(schedule, verb, says, extra = {}) {
	return { label: verb, says, path: path`schedules/${schedule.name}/${verb}`, command: () => command("schedule", verb, schedule.name), done: () => "So it is.", ...extra };
}
export const pause_schedule = (s) => schedule_verb(s, "pause", "No further slot is started.");
export const resume_schedule = (s) => schedule_verb(s, "resume", "It goes on with the slot that comes next; those of the pause are gone.");
export const trigger_schedule = (s) => schedule_verb(s, "trigger", "It starts now, beside its slots.", { done: (a) => `${(a.run || a.batch || a.job)?.id || "It"} is started.` });
export const delete_schedule = (s) => ({
	label: "delete", tone: "danger", title: "delete the schedule", method: "DELETE", says: "What it has started goes on.", path: path`schedules/${s.name}`, body: () => undefined,
	command: () => command("schedule", "delete", s.name), done: () => "It is gone.",
});
