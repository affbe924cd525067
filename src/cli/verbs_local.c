/*
 * The table of the verbs that need no server: those that serve, those that look at files, those that open a store. And the
 * records of a gate, which are asked for at its admin address. See command.h for what a row says, verbs_flow.c for the
 * order in which it says it.
 */
#include "cli/gate_record.h"
#include "cli/local.h"
#include "cli/verbs.h"
#include "engine/keyring.h"

_Static_assert(KEYRING_AGE_MAX_MS == 2000, "key revoke says so");

/* As in verbs_flow.c. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* clang-format off */

SHARED_OPTION(option_db, "db", "URL", "the store: sqlite:PATH or postgres://…", .env = "HAPAX_DB", .fallback = "sqlite:hapax.db");
#define OPTION_DB (&option_db)
#define OPTION_NO_MIGRATE \
	OPTION("no-migrate", NULL, "refuse a store whose schema does not fit, instead of bringing it up to date")
#define OPTION_JSON_ERRORS OPTION("json", NULL, "errors as JSON; the result stays what it is")

/* Of a server, and of `hapax dev`, which has other defaults. */
#define SERVE_STORE \
	OPTION("db", "URL", "the store: sqlite:PATH, sqlite::memory: or postgres://… [default: sqlite:hapax.db]", \
	       .env = "HAPAX_DB"), \
	OPTION("listen", "ADDR:PORT", "where to listen; port 0 is any free one [default: 127.0.0.1:7411]", \
	       .env = "HAPAX_LISTEN")
#define SERVE_NODE \
	OPTION("node", "NAME", \
	       "what this node is called in histories; made unique if one that is alive has it [default: the host's name]", \
	       .env = "HAPAX_NODE"), \
	OPTION_NO_MIGRATE, \
	OPTION("tls-terminated", NULL, \
	       "TLS ends in front of this server: keys are not sent in the clear. Needed beyond loopback", \
	       .env = "HAPAX_TLS_TERMINATED")
#define SERVE_EXITS \
	{HX_STORE_UNAVAILABLE, "the store cannot be opened"}, \
	{HX_BUSY, "another server has the store open, or the address"}, \
	{HX_CONFIG_ERROR, \
	 "the configuration, a definition or the coverage of a claim is not valid; the schema does not fit; " \
	 "or it would listen beyond loopback without keys or TLS"}

#define OPTION_RECORD \
	OPTION("record", "ID", "which one, its id or how that begins; needed if the key has several")

const struct command_option *const gate_options[] = {
	OPTION("admin", "ADDR:PORT",
	       "the admin address of the gate; its key, if it wants one, is taken from HAPAX_GATE_ADMIN_KEY",
	       .env = "HAPAX_GATE_ADMIN", .fallback = "127.0.0.1:7413"),
	OPTION_TIMEOUT, OPTION_JSON, NULL,
};

const struct command verbs_serving[] = {
	{"serve", NULL, NULL, "runs the engine and its HTTP API",
	 .options = OPTIONS(SERVE_STORE,
		     OPTION("workflows", "DIR", "a folder of definitions, *.json [default: those in the store]",
			    .env = "HAPAX_WORKFLOWS"),
		     OPTION("config", "FILE",
			    "the configuration: modules and their janitors, entry locks, outbound addresses [default: none]",
			    .env = "HAPAX_CONFIG"),
		     SERVE_NODE,
		     OPTION("test-clock", NULL,
			    "for tests, with --db sqlite::memory: alone: POST /api/v1/test-clock moves the time")),
	 .exits = EXITS(SERVE_EXITS), .run = serve_run},
	{"dev", NULL, NULL, "serves a folder that you work in: whatever you save is in force at once, or told why not",
	 .options = OPTIONS(SERVE_STORE,
		     OPTION("workflows", "DIR",
			    "a folder of definitions, *.json, that is watched [default: workflows, if it is there]",
			    .env = "HAPAX_WORKFLOWS"),
		     OPTION("config", "FILE",
			    "the configuration, which is watched, too [default: hapax.json, if it is there]",
			    .env = "HAPAX_CONFIG"),
		     SERVE_NODE),
	 .exits = EXITS(SERVE_EXITS), .run = dev_run},

	{"dashboard", NULL, NULL, "serves the dashboard of a server elsewhere, on this machine, with your key",
	 "GET", "/api/v1/session",
	 .options = OPTIONS(OPTION("listen", "ADDR:PORT", "where to listen, on loopback; port 0 is any free one", .fallback = "127.0.0.1:7414")),
	 .exits = EXITS({HX_CONFIG_ERROR, "it would listen beyond loopback, or an address is not valid"}),
	 .run = dashboard_run},

	/* ---- a gate, and its records ---- */
	{"gate", NULL, NULL, "stands in front of an HTTP service: one request per Idempotency-Key",
	 .options = OPTIONS(OPTION("upstream", "URL",
			    "the service that is guarded, http://HOST:PORT or https://HOST:PORT; needed, here or in FILE",
			    .env = "HAPAX_GATE_UPSTREAM"),
		     OPTION("listen", "ADDR:PORT",
			    "where clients come in; port 0 is any free one [default: 127.0.0.1:7412]",
			    .env = "HAPAX_GATE_LISTEN"),
		     OPTION("admin", "ADDR:PORT",
			    "health, metrics and `hapax gate show|list|forget|resolve`, on loopback; wants the key in "
			    "HAPAX_GATE_ADMIN_KEY, if there is one [default: off]", .env = "HAPAX_GATE_ADMIN"),
		     OPTION("store", "URL",
			    "the records: sqlite:PATH, postgres://…, redis://… or memory: [default: sqlite:gate.db]",
			    .env = "HAPAX_GATE_STORE"),
		     OPTION("config", "FILE",
			    "the configuration: routes and what is done with them, see docs/gate.md [default: none]",
			    .env = "HAPAX_GATE_CONFIG"),
		     OPTION_NO_MIGRATE),
	 .exits = EXITS({HX_STORE_UNAVAILABLE, "the store cannot be opened"},
		   {HX_BUSY, "another gate or server has the store open, or the address"},
		   {HX_CONFIG_ERROR, "the configuration or an address is not valid; or the schema does not fit"}),
	 .run = gate_run},
	{"gate", "list", NULL, "lists the records of a gate, or those that wait for a person",
	 "GET", "/gate/records",
	 LIST({"KEY", "{key}"}, {"RECORD", "{record:short}"}, {"GATE", "{gate}"}, {"ENDPOINT", "{endpoint}"},
	      {"TENANT", "{tenant}"}, {"STATUS", "{status}"}, {"CREATED", "{createdAt}"}),
	 .to_gate = true,
	 .options = OPTIONS(OPTION("held", NULL, "only those that wait for a person to say what became of them",
			    TO(QUERY, .otherwise = "all")),
		     OPTION_CURSOR)},
	{"gate", "show", "KEY", "shows the records of an idempotency key",
	 "GET", "/gate/records", &gate_records_view, .to_gate = true, .dashed = true,
	 .ask = gate_ask_show},
	{"gate", "resolve", "KEY", "says what became of a request whose outcome nobody knew",
	 "POST", "/gate/records/{KEY}/resolve", /* of its record, which is looked up first */ .to_gate = true, .dashed = true,
	 .options = OPTIONS(OPTION("done", NULL, "it was done: retries get 409 RESPONSE_NOT_STORED, and nothing is executed"),
		     OPTION("not-done", NULL, "it was not done: the next request with the key is executed"),
		     OPTION_RECORD),
	 .exits = EXITS({HX_IN_FLIGHT,
		    "its request may still be at work, it has been answered, or the key has just been used"}),
	 .ask = gate_ask_resolve},
	{"gate", "forget", "KEY", "forgets a record, so that the next request with its key is executed",
	 "DELETE", "/gate/records/{KEY}", LINE("forgotten: the next request with this key is executed"),
	 .to_gate = true, .dashed = true,
	 .options = OPTIONS(OPTION_RECORD),
	 .exits = EXITS({HX_IN_FLIGHT, "its request may still be at work, or the key has just been used"}),
	 .ask = gate_ask_forget},

	/* ---- files ---- */
	{"init", NULL, "DIR",
	 "writes a small project to start from, with a README; DIR may be there, its files may not",
	 .options = OPTIONS(OPTION("js", NULL, "functions in JavaScript, with the client"),
		     OPTION("python", NULL, "functions in Python, with the client"), OPTION_JSON),
	 .exits = EXITS({HX_VALIDATION_ERROR, "both --js and --python"},
		   {HX_ALREADY_EXISTS, "one of its files is there already; nothing was written"},
		   {HX_INTERNAL, "a folder or a file cannot be made; nothing is left of it"}),
	 .run = init_run},
	{"check", NULL, "PATH…", "checks definitions: files, or the *.json of folders",
	 .options = OPTIONS(OPTION("config", "FILE",
			    "check this configuration too, and that a janitor covers every claim "
			    "[default: none, and coverage is not checked]",
			    .env = "HAPAX_CONFIG"),
		     OPTION("strict", NULL, "warnings are errors"),
		     OPTION("explore", NULL,
			    "also says what `hapax explore` finds at once, which is no error [default: on a terminal]"),
		     OPTION_JSON),
	 .exits = EXITS({HX_DEFINITION_INVALID, "there are errors; with --strict also: there are warnings"}),
	 .run = check_run},
	{"explore", NULL, "PATH…", "looks for a way to break definitions: crashes, lost answers, double clicks, in every order",
	 .options = OPTIONS(OPTION("world", "FILE", "what services may do, inputs, and rules of your own [default: what each action's effect says]"),
		     OPTION("diff", "FILE", "a file or folder with the definitions as they were: what begins with these, and meets the new ones under way [default: none]"),
		     OPTION("worker", "CMD", "a function in code: CMD starts its worker, whose calls are lost, late, or its last; PATH: definitions besides [default: none]"),
		     OPTION("nodes", "N", "nodes of the engine, 1 to 3", .fallback = "2"),
		     OPTION("callers", "N", "who clicks at the same time, 1 to 3", .fallback = "2"),
		     OPTION("together", "N", "workflows that meet in one world, 1 to 3", .fallback = "2"),
		     OPTION("crashes", "N", "at most so many times a node is killed", .fallback = "1"),
		     OPTION("pauses", "N", "at most so many times a node stands still past its lease", .fallback = "1"),
		     OPTION("lost", "N", "at most so many answers of services are lost", .fallback = "1"),
		     OPTION("failures", "N", "at most so many calls fail or are rejected", .fallback = "1"),
		     OPTION("mishaps", "N", "at most so many of these four together", .fallback = "2"),
		     OPTION("seconds", "N", "how far it goes: 50,000 edges each, on every machine the same", .fallback = "10"),
		     OPTION("for", "TIME", "at most so long by the clock besides, 10s: what is left is told as bounded [default: as long as it takes]"),
		     OPTION("seed", "N", "tries them in another order; the same number, the same answer", .fallback = "0"),
		     OPTION("brief", NULL, "suggests nothing: what might help is not explored as well"),
		     OPTION("html", "OUT", "also writes it as a page: the story as lanes, the ledger, what was covered [default: none]"),
		     OPTION("save-test", "OUT", "also writes the story as a new file for `hapax test`, NAME.test.json [default: none]"),
		     OPTION("junit", NULL, "the report as JUnit's XML"),
		     OPTION("sarif", NULL, "the report as SARIF 2.1.0"), OPTION_JSON),
	 .exits = EXITS({HX_PROMISE_BROKEN, "a way was found: the story is on standard output"},
		   {HX_VALIDATION_ERROR, "a definition, the world or an option is not valid; or the story cannot be said as a test"},
		   {HX_INTERNAL, "the page, or the test, cannot be written"}),
	 .fewer = true, .run = explore_run},
	{"test", NULL, "PATH…", "carries out examples of definitions, given, when, then: *.test.json, or those of folders",
	 .options = OPTIONS(OPTION("server", NULL,
			    "each once more on a real server that is started for it, whose services this program is; it must come to the same end"),
		     OPTION("db", "URL",
			    "with --server: a database of PostgreSQL, postgres://…, in which each server has a schema of its own for so long; time is real then [default: SQLite]"),
		     OPTION("watch", NULL, "again after each change in the folder of the first, until it is interrupted"),
		     OPTION("junit", NULL, "the report as JUnit's XML"), OPTION_JSON),
	 .exits = EXITS({HX_PROMISE_BROKEN, "one is not as expected: how, and what happened, is on standard output"},
		   {HX_VALIDATION_ERROR, "a file, a definition, the world or an option is not valid"},
		   {HX_INTERNAL, "no server can be started"}),
	 .run = test_run},
	{"graph", NULL, "FILE", "draws a definition as an SVG picture",
	 .options = OPTIONS(OPTION("output", "FILE", "where the picture goes, a .svg; -: standard output", .letter = 'o',
			    .fallback = "-"),
		     OPTION_JSON_ERRORS),
	 .exits = EXITS({HX_DEFINITION_INVALID, "the definition has errors, and is not drawn"},
		   {HX_TOO_LARGE, "the picture would be too large"},
		   {HX_INTERNAL, "the picture cannot be written"}),
	 .run = graph_run},
	{0},
};

/* ---- stores ---- */

#define NO_STORE_EXIT {HX_NOT_FOUND, "there is no store"}
#define NOT_OPENED_EXIT {HX_STORE_UNAVAILABLE, "the store cannot be opened"}
#define LOST_EXIT {HX_STORE_UNAVAILABLE, "the store cannot be opened, or was lost"}
#define SCHEMA_EXIT {HX_SCHEMA_MISMATCH, "the schema does not fit the program, or the URL is not valid"}
#define KEY_EXITS {HX_NOT_FOUND, "there is no store, or no such key"}, LOST_EXIT, SCHEMA_EXIT

static const char *const scopes[] = {"read", "execute", "admin", "worker", NULL};

const struct command verbs_store[] = {
	{"audit", NULL, NULL, "re-derives the promises from the history, and names the first that was broken",
	 .view = LINE("[{?whole}whole|not whole, as far as it was read]: "
		      "[{bundle}, taken {at}, history rows {historyRows}, ledger entries {ledgerEntries}, head {head}|"
		      "subjects {subjects}, history rows {historyRows}, steps {steps}, accounts {accounts}, "
		      "ledger entries {ledgerEntries}, batches {batches}, items {items}; {ms:seconds} s]"),
	 .options = OPTIONS(OPTION_DB,
		     OPTION("bundle", "FILE", "check this evidence, as hapax evidence writes it, and no store; -: standard input [default: none]"),
		     OPTION_JSON),
	 .exits = EXITS({HX_PROMISE_BROKEN, "a promise was broken: which, where, what was expected and found"},
		   {HX_VALIDATION_ERROR, "FILE is no evidence, or cannot be read"}, NO_STORE_EXIT, LOST_EXIT, SCHEMA_EXIT),
	 .make = audit_make},
	{"key", "create", NULL, "makes an API key and shows it, once",
	 .view = LINE("{key}"), /* alone, so that a script can keep it; what it is stands beside */
	 .options = OPTIONS(OPTION("scope", "SCOPE", "read, execute (and read), admin (all), or worker (what workers do, alone)", .needed = true,
			    .words = scopes),
		     OPTION("workspace", "NAME", "the workspace that it opens, and no other", .fallback = "default"),
		     OPTION("requester", "NAME", "on whose behalf everything is done that is done with it",
			    .fallback = "default"),
		     OPTION("expires", "DURATION",
			    "it is good for so long, such as 90d [default: until it is revoked]"),
		     OPTION("name", "NAME", "a word or two for people, on what it is for [default: none]"),
		     OPTION_DB, OPTION_JSON),
	 .exits = EXITS(KEY_EXITS, {HX_TOO_LARGE, "there are too many keys"},
		   {HX_OUTCOME_UNKNOWN, "it is not known whether it was made; nobody has it"}),
	 .make = key_create_make},
	{"key", "list", NULL, "lists the API keys there are and were; none of them can be shown again",
	 .view = LIST({"ID", "{id}"}, {"STATUS", "{status}"}, {"SCOPE", "{scope}"}, {"WORKSPACE", "{workspace}"},
		      {"REQUESTER", "{requester}"}, {"CREATED", "{createdAt}"}, {"EXPIRES", "{expiresAt}"}, {"NAME",
													     "{name}"}),
	 .options = OPTIONS(OPTION_DB, OPTION_JSON),
	 .exits = EXITS(KEY_EXITS),
	 .make = key_list_make},
	{"key", "revoke", "ID", "revokes an API key, for ever, on all servers of the store",
	 .view = LINE("{id} [{?already}was revoked before|is revoked: every server refuses it within 2 s]"),
	 .options = OPTIONS(OPTION_DB, OPTION_JSON),
	 .exits = EXITS(KEY_EXITS, {HX_OUTCOME_UNKNOWN, "it is not known whether it is revoked: do it again"}),
	 .make = key_revoke_make},
	{"db", "status", NULL, "does the store's schema fit this program?",
	 .view = LINE("store    {store}\nschema   {schema}\nprogram  {known}"),
	 .options = OPTIONS(OPTION_DB, OPTION_JSON),
	 .exits = EXITS(NO_STORE_EXIT, NOT_OPENED_EXIT,
		   {HX_SCHEMA_MISMATCH, "the schema is behind the program or newer, or the URL is not valid"}),
	 .make = db_status_make},
	{"db", "migrate", NULL, "brings the store's schema up to date, and makes the store where there is none",
	 .view = LINE("{store}: [{?schema-before}brought from schema {before} to {schema}|schema {schema}, nothing to do]"),
	 .options = OPTIONS(OPTION_DB, OPTION("print", NULL, "only print the SQL that would be run, and change nothing"),
		     OPTION_JSON),
	 .exits = EXITS(NOT_OPENED_EXIT, {HX_BUSY, "a server has the store open, and there is something to do"},
		   {HX_SCHEMA_MISMATCH, "the schema is newer than the program, or the URL is not valid"}),
	 .make = db_migrate_make},
	{"db", "backup", "FILE",
	 "copies an SQLite store into a new file, also beside a running server (PostgreSQL: use pg_dump)",
	 .view = LINE("{file}: {bytes} bytes, of one moment, checked"),
	 .options = OPTIONS(OPTION_DB, OPTION_JSON),
	 .exits = EXITS(NO_STORE_EXIT, {HX_ALREADY_EXISTS, "FILE is there already, and is left alone"},
		   {HX_STORE_UNAVAILABLE, "the store cannot be read"},
		   {HX_INTERNAL, "FILE cannot be written, or the copy is not whole: there is none then"},
		   {HX_CONFIG_ERROR, "the store is not an SQLite file with a store in it, or the URL is not valid"}),
	 .make = backup_make},
	{"db", "raise-fences", NULL, "after a restore: lifts all fences above those that the lost store gave out",
	 .view = LINE("{store}: from now on every fence is above {fencesAbove}"),
	 .options = OPTIONS(OPTION_DB, OPTION_JSON),
	 .exits = EXITS(NO_STORE_EXIT, NOT_OPENED_EXIT, {HX_BUSY, "a server uses the store: stop it first"},
		   {HX_SCHEMA_MISMATCH,
		    "the schema does not fit the program, the URL is not valid, or the clock is behind"}),
	 .make = db_raise_fences_make},
	{"completion", NULL, "bash|zsh", "prints a script that completes commands, options and values in a shell",
	 .options = OPTIONS(OPTION_JSON_ERRORS),
	 .run = completion_run},
	{0},
};
