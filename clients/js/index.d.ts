/** "250ms" "5s" "2m" "24h" "7d", or milliseconds. */
export type Duration = `${number}${"ms" | "s" | "m" | "h" | "d"}` | number;
export interface Retry { maxAttempts?: number; initial?: Duration; factor?: number; max?: Duration; jitter?: boolean }
export interface Attempt { attempt: number; /** aborted when the run is lost, dropped or too slow */ signal: AbortSignal }
type Maybe<T> = T | Promise<T>;

export interface StepOptions<T = unknown> {
  /** keyed (default): the other side takes the key once. claimed: it does not; begun in the journal before it is executed. */
  effect?: "keyed" | "claimed" | "idempotent";
  /** After a crash in the middle. Default: hold for claimed (probe, if there is one), retry for the rest. */
  onUnknown?: "retry" | "probe" | "hold";
  /** Was it done? Its output, or null or undefined if not; an error if nobody can tell. */
  probe?: (key: string) => Maybe<T | null | undefined>;
  retry?: Retry;
  timeout?: Duration;
  /** Undoes it when the run is cancelled; keyed. (It stands ahead of what gives the output, from which T is inferred.) */
  compensate?: (output: any, key: string, attempt: Attempt) => unknown;
}
export interface Approval { decision: "approve"; by: string | null; comment: string | null }

export interface Context {
  readonly id: string;
  step<T>(name: string, execute: (key: string, attempt: Attempt) => Maybe<T>): Promise<T>;
  step<T>(name: string, options: StepOptions<T>, execute: (key: string, attempt: Attempt) => Maybe<T>): Promise<T>;
  sleep(name: string, time: Duration | Date): Promise<null>;
  event<T = unknown>(name: string, options?: { event?: string; timeout?: Duration }): Promise<T>;
  /** Throws an EntryError with the code REJECTED, or TIMEOUT. */
  approval(name: string, options?: { timeout?: Duration }): Promise<Approval>;
  child<I, O>(name: string, fn: Fn<I, O>, input: I): Promise<O>;
  child<O = unknown>(name: string, workflow: string, input?: object): Promise<O>;
  all<T extends readonly unknown[] | []>(list: T): Promise<{ -readonly [P in keyof T]: Awaited<T[P]> }>;
  /** The first that ends; the others are dropped. */
  race<T>(list: readonly Promise<T>[]): Promise<T>;
  now(): Promise<number>;
  random(): Promise<number>;
  uuid(): Promise<string>;
  attribute(name: string, value: string | number | boolean | null): Promise<void>;
  /** True for runs that come here for the first time with this code, false for those that have been further with older code. */
  patched(name: string): Promise<boolean>;
  /** Undoes the last use of a step's name when the run is cancelled. */
  compensate<T = any>(name: string, undo: (output: T, key: string, attempt: Attempt) => unknown): void;
  compensate<T = any>(name: string, options: StepOptions & { n?: number }, undo: (output: T, key: string, attempt: Attempt) => unknown): void;
  log(...words: unknown[]): void;
}

export interface Fn<I, O> { readonly name: string; readonly version: string; readonly code: (ctx: Context, input: I) => Maybe<O> }
declare function define<I = any, O = unknown>(name: string, options: { version?: string }, code: (ctx: Context, input: I) => Maybe<O>): Fn<I, O>;
declare function define<I = any, O = unknown>(name: string, code: (ctx: Context, input: I) => Maybe<O>): Fn<I, O>;
export { define as function };

export interface Connection {
  /** Default: HAPAX_SERVER, else http://127.0.0.1:7411. */
  server?: string;
  /** Default: HAPAX_KEY. */
  key?: string;
  workspace?: string;
  requester?: string;
  /** Of one try. */
  timeout?: Duration;
  /** Of a call with all its tries. */
  patience?: Duration;
}
export interface WorkOptions extends Connection {
  functions: readonly Fn<any, any>[];
  concurrency?: number;
  lease?: Duration;
  worker?: string;
  /** How many suspended runs are kept in memory. */
  keep?: number;
  signal?: AbortSignal;
  log?: (...words: unknown[]) => void;
}
export interface Working extends Promise<void> { readonly name: string; stop(): Promise<void> }
export function work(options: WorkOptions): Working;

export interface Run<I = unknown, O = unknown> {
  id: string; status: "PENDING" | "RUNNING" | "WAITING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLING" | "CANCELLED";
  version: number; definitionId: string; input: I; output: O | null; error: unknown; idempotencyKey: string | null;
  steps: { name: string; status: string; attempt: number; output: unknown; error: unknown }[]; [more: string]: unknown;
}
export interface Page<T = any> { items: T[]; cursor: string | null }
export interface Client {
  start<I, O>(fn: Fn<I, O>, input: I, options?: StartOptions): Promise<Run<I, O> & { created: boolean }>;
  start(workflow: string, input?: object, options?: StartOptions): Promise<Run & { created: boolean }>;
  show(id: string): Promise<Run>;
  list(query?: Record<string, string | number | null | undefined>): Promise<Page<Run>>;
  wait(id: string, options?: { timeout?: Duration }): Promise<Run>;
  result<O = unknown>(id: string, options?: { timeout?: Duration }): Promise<O>;
  signal(id: string, event: string, data?: unknown, options?: { id?: string }): Promise<any>;
  approve(id: string, step: string, options?: { decision?: "approve" | "reject"; by?: string; comment?: string; version?: number }): Promise<any>;
  resolve(id: string, step: string, options: { outcome: "done" | "not_done"; output?: unknown }): Promise<any>;
  cancel(id: string, options?: { version?: number }): Promise<any>;
  retry(id: string, options?: { version?: number }): Promise<any>;
  pause(id: string, options?: { version?: number }): Promise<any>;
  resume(id: string, options?: { version?: number }): Promise<any>;
  schedule(name: string, spec: object): Promise<any>;
  batches: { start(spec: { key?: string; [more: string]: unknown }): Promise<any>; show(id: string): Promise<any>; wait(id: string, options?: { timeout?: Duration }): Promise<any>;
    items(id: string, query?: object): Promise<Page>; cancel(id: string): Promise<any>; accept(id: string, n: number, options?: object): Promise<any> };
  entities: { create(workflow: string, options?: { id?: string; data?: object }): Promise<any>; show(workflow: string, id: string): Promise<any>;
    list(workflow: string, query?: object): Promise<Page>; fire(workflow: string, id: string, step: string, options?: { input?: object; version?: number }): Promise<any> };
  jobs: { push(queue: string, payload?: unknown, options?: { key?: string; runAt?: string; priority?: number }): Promise<any>; list(query?: object): Promise<Page>;
    claim(options: object): Promise<any>; heartbeat(id: string, options: object): Promise<any>; complete(id: string, options: object): Promise<any>;
    fail(id: string, options: object): Promise<any>; redrive(id: string): Promise<any> };
  /** Any other call: the path is below /api/v1/. */
  call(method: string, path: string, body?: unknown, options?: { idempotencyKey?: string }): Promise<any>;
  close(): void;
}
export interface StartOptions { key?: string; signal?: { event: string; id?: string; data?: unknown } }
export function connect(options?: Connection): Client;
export function duration(text: Duration): number;

export interface TestOptions<I> {
  input?: I;
  /** In place of what the code executes, by the name of the step. Its probe is then asked what this has given. */
  steps?: Record<string, (key: string, attempt: Attempt) => unknown>;
  /** Sent when the run is started, by the name of the event. */
  events?: Record<string, unknown>;
  /** Given as soon as they are asked for, by their name; those of children, too. */
  approvals?: Record<string, { decision?: "approve" | "reject"; by?: string; comment?: string }>;
  /** Those that it has as children. */
  functions?: readonly Fn<any, any>[];
  /** false: once, as it should be. "once": its worker dies at each of its places, and never goes on. Default: every order of two workers. */
  crash?: boolean | "once";
  /** Called before each run: puts back what the fakes remember. */
  fresh?: () => void;
  /** What the effects have come to, as JSON: it has to be the same each time. */
  world?: () => unknown;
  /** Its output may differ (times, random numbers). */
  loose?: boolean;
  timeout?: number;
  /** The program; default HAPAX, else hapax. */
  hapax?: string;
}
/** What came of it, and how often: calls of the journal, places at which its worker has died, orders of two workers with those. */
export interface Tested<O> { status: string; output: O; error: unknown; effects: string[]; exchanges: number; crashes: number; orders: number }
/** Runs it against an engine in memory, without waiting for its sleeps; then once for each order of two workers. */
export function test<I, O>(fn: Fn<I, O>, options?: TestOptions<I>): Promise<Tested<O>>;

/** A step that throws it is not tried again. */
export class Final extends Error {}
/** A claimed step that throws it has certainly done nothing, and is tried again. */
export class NotDone extends Error {}
export class HapaxError extends Error { readonly status: number; readonly code?: string; readonly problem: unknown }
export class EntryError extends Error { readonly code?: string; readonly error: unknown; readonly step: string }
declare const hapax: { function: typeof define; work: typeof work; connect: typeof connect; test: typeof test; duration: typeof duration;
  Final: typeof Final; NotDone: typeof NotDone; HapaxError: typeof HapaxError; EntryError: typeof EntryError };
export default hapax;
