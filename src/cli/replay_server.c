/* See replay_server.h. */
#include "cli/replay_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json_string.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "cli/out_file.h"
#include "db/driver.h"

#define TEXT_BYTES_MAX (4u << 20)
#define NODES_MAX 100000
#define TREE_BYTES_MAX (64u << 20)
#define START_MS 30000
#define LOG "log"
#define LEASE "2s" /* where it has to be waited for */
#define PAUSE_S 3

/* ---- the definitions, as they are served ---- */

/* Where a text is another one there. */
struct rewriting {
	const struct replay_plan *plan;
	const struct definition *of;
};

static void write_node(const struct rewriting *r, const struct json_node *node, unsigned depth, const char *parent,
		       const char *name, struct strbuf *out);

static void write_members(const struct rewriting *r, const struct json_node *node, unsigned depth, const char *name,
			  struct strbuf *out)
{
	bool object = node->type == JSON_OBJECT, first = true;

	strbuf_add_char(out, object ? '{' : '[');
	json_node_for_each(child, node)
	{
		strbuf_add_str(out, first ? "" : ",");
		first = false;
		if (object) {
			json_quote(child->name, out);
			strbuf_add_char(out, ':');
		}
		write_node(r, child, depth + 1, name, object ? child->name.p : "", out);
	}
	strbuf_add_char(out, object ? '}' : ']');
}

/* Which the test begins with; NULL: as it is written. */
static const char *status_of(const struct rewriting *r)
{
	for (const struct example_subject *s = &r->plan->result->example->first; s; s = s->with)
		if (example_definition(r->plan->set, s) == r->of)
			return s->status;
	return NULL;
}

/* actions.NAME.url is that of the mock; initial_status the one that the test begins with. */
static void write_node(const struct rewriting *r, const struct json_node *node, unsigned depth, const char *parent,
		       const char *name, struct strbuf *out)
{
	if (depth == 3 && strcmp(name, "url") == 0 && parent[0]) {
		strbuf_addf(out, "\"%s/%s\"", r->plan->mock_url, parent);
	} else if (depth == 1 && strcmp(name, "initial_status") == 0 && status_of(r)) {
		json_quote(slice_str(status_of(r)), out);
	} else if (node->type == JSON_OBJECT || node->type == JSON_ARRAY) {
		write_members(r, node, depth, name, out);
	} else {
		strbuf_add_slice(out, node->value.raw);
	}
}

static enum hx_code write_definition(const struct replay_server *s, const struct replay_plan *plan, size_t i,
				     struct hx_error *err)
{
	struct rewriting r = {plan, plan->set->items[i]};
	const struct json_node *root;
	char path[80];
	enum hx_code code;
	LOCAL_ARENA(arena, TREE_BYTES_MAX);

	LOCAL_STRBUF(text, TEXT_BYTES_MAX);
	LOCAL_STRBUF(out, TEXT_BYTES_MAX);
	if (!file_read(r.of->file, &text))
		return error_set(err, HX_INTERNAL, "%s: %s", r.of->file, strerror(errno));
	code = json_tree_parse(strbuf_slice(&text), NODES_MAX, &arena, err, &root);
	if (code)
		return code;
	write_node(&r, root, 0, "", "", &out);
	snprintf(path, sizeof path, "%s/flows/%zu.json", s->folder, i);
	return out_file_write(path, strbuf_slice(&out), err);
}

static void add_hook(const struct example_mock *m, struct strbuf *out)
{
	json_more(out, m->action);
	strbuf_addf(out,
		    "{\"verify\":{\"scheme\":\"hmac-sha256\",\"secrets\":[\"" REPLAY_SECRET "\"]},\"id\":\"/id\","
		    "\"%s\":{\"workflow\":\"%s\"",
		    !m->event  ? "start"
		    : m->fires ? "fire"
			       : "signal",
		    m->tells);
	if (m->event)
		strbuf_addf(out, ",\"%s\":\".key\",\"%s\":\"%s\"", m->fires ? "id" : "key", m->fires ? "step" : "event",
			    m->event);
	strbuf_add_str(out, "}}");
}

/* Every module has a janitor; leases are short where they have to be waited for. */
static enum hx_code write_config(const struct replay_server *s, const struct replay_plan *plan, struct hx_error *err)
{
	const char *lease = s->clocked ? "1m" : LEASE;
	char path[80];
	LOCAL_STRBUF(out, TEXT_BYTES_MAX);

	strbuf_addf(&out, "{\"lease\":\"%s\",\"hooks\":{", lease);
	for (size_t i = 0; i < plan->services_n; i++)
		if (plan->services[i].tells)
			add_hook(&plan->services[i], &out);
	strbuf_add_str(&out, "},\"modules\":{");
	for (size_t i = 0; i < plan->set->n; i++) {
		const char *module = plan->set->items[i]->module;
		bool known = !module;

		for (size_t k = 0; k < i && !known; k++)
			known = plan->set->items[k]->module && strcmp(plan->set->items[k]->module, module) == 0;
		if (known)
			continue;
		json_more(&out, module);
		strbuf_addf(&out, "{\"janitor\":{\"every\":\"1s\",\"stuck_after\":\"%s\"}}", lease);
	}
	strbuf_add_str(&out, "}}");
	snprintf(path, sizeof path, "%s/config.json", s->folder);
	return out_file_write(path, strbuf_slice(&out), err);
}

static enum hx_code write_folder(struct replay_server *s, const struct replay_plan *plan, struct hx_error *err)
{
	const char *tmp = getenv("TMPDIR");
	char flows[60];
	enum hx_code code;

	if (!tmp || !*tmp || strlen(tmp) > 16)
		tmp = "/tmp";
	snprintf(s->folder, sizeof s->folder, "%s/hapax-test-XXXXXX", tmp);
	if (!mkdtemp(s->folder)) {
		s->folder[0] = '\0';
		return error_set(err, HX_INTERNAL, "a folder in %s: %s", tmp, strerror(errno));
	}
	snprintf(flows, sizeof flows, "%s/flows", s->folder);
	if (mkdir(flows, 0700) != 0)
		return error_set(err, HX_INTERNAL, "%s: %s", flows, strerror(errno));
	code = write_config(s, plan, err);
	for (size_t i = 0; i < plan->set->n && !code; i++)
		code = write_definition(s, plan, i, err);
	return code;
}

/* ---- the process ---- */

/* "ready URL" is its first line. */
static enum hx_code read_ready(struct replay_server *s, int fd, struct hx_error *err)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	char line[100];
	size_t n = 0;

	while (n < sizeof line - 1 && poll(&poller, 1, START_MS) > 0) {
		ssize_t got = read(fd, line + n, sizeof line - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
		line[n] = '\0';
		if (line[n - 1] != '\n' || sscanf(line, "ready %79s", s->url) != 1)
			continue;
		snprintf(s->listen, sizeof s->listen, "%.39s", s->url + strlen("http://"));
		return HX_OK;
	}
	LOCAL_STRBUF(log, TEXT_BYTES_MAX);
	snprintf(line, sizeof line, "%s/" LOG, s->folder);
	(void)file_read(line, &log);
	return error_set(err, HX_INTERNAL, "the server for the test does not start: %.400s", log.n ? log.p : "");
}

static int spawn(struct replay_server *s, int out_fd)
{
	char log[60], flows[60], config[60], self[PATH_MAX] = "";
	const char *const argv[] = {self,
				    "serve",
				    "--db",
				    s->db,
				    "--listen",
				    s->listen,
				    "--workflows",
				    flows,
				    "--config",
				    config,
				    s->clocked ? "--test-clock" : NULL,
				    NULL};
	static char *const nothing[] = {NULL};
	posix_spawn_file_actions_t files;
	int failure = readlink("/proc/self/exe", self, sizeof self - 1) > 0 ? 0 : errno;

	snprintf(log, sizeof log, "%s/" LOG, s->folder);
	snprintf(flows, sizeof flows, "%s/flows", s->folder);
	snprintf(config, sizeof config, "%s/config.json", s->folder);
	if (!failure)
		failure = posix_spawn_file_actions_init(&files);
	if (failure)
		return failure;
	failure = posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
	if (!failure)
		failure = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
							   0600);
	if (!failure)
		failure = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (!failure)
		failure = posix_spawn(&s->pid, self, &files, NULL, (char *const *)(uintptr_t)argv, nothing);
	(void)posix_spawn_file_actions_destroy(&files);
	return failure;
}

static enum hx_code start(struct replay_server *s, struct hx_error *err)
{
	int fds[2], failure;
	enum hx_code code;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return error_set(err, HX_INTERNAL, "a pipe: %s", strerror(errno));
	failure = spawn(s, fds[1]);
	close(fds[1]);
	code = failure ? error_set(err, HX_INTERNAL, "a server for the test: %s", strerror(failure))
		       : read_ready(s, fds[0], err);
	close(fds[0]);
	return code;
}

/* Nobody else has a schema of this name: the folder's is one. */
static enum hx_code name_store(struct replay_server *s, const struct replay_plan *plan, struct hx_error *err)
{
	int n;

	if (!plan->store) {
		n = s->clocked ? snprintf(s->db, sizeof s->db, "sqlite::memory:")
			       : snprintf(s->db, sizeof s->db, "sqlite:%s/store.db", s->folder);
	} else {
		s->store = plan->store;
		snprintf(s->schema, sizeof s->schema, "hapax_test_%s", strrchr(s->folder, '-') + 1);
		n = snprintf(s->db, sizeof s->db, "%s%cschema=%s", s->store, strchr(s->store, '?') ? '&' : '?',
			     s->schema);
	}
	return (size_t)n < sizeof s->db ? HX_OK : error_set(err, HX_CONFIG_ERROR, "the URL of the store is too long");
}

/* A store of one's own: nobody else is there. */
static enum hx_code run_script(const char *url, const char *sql, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system()};
	struct db *db = NULL;
	enum hx_code code = db_open(&options, &db, err);

	if (!code)
		code = db->driver->script(db, sql, err);
	db_close(db);
	return code;
}

/* The world's tables stand in it before the server's own. */
static enum hx_code make_tables(const struct replay_server *s, const char *sql, struct hx_error *err)
{
	char schema[80];
	enum hx_code code = HX_OK;

	snprintf(schema, sizeof schema, "CREATE SCHEMA \"%s\"", s->schema);
	if (s->store)
		code = run_script(s->store, schema, err);
	return code ? code : run_script(s->db, sql, err);
}

static void drop_schema(const struct replay_server *s)
{
	struct hx_error err;
	char sql[80];

	snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS \"%s\" CASCADE", s->schema);
	if (run_script(s->store, sql, &err))
		fprintf(stderr, "hapax: the schema %s is left: %s\n", s->schema, err.detail);
}

enum hx_code replay_server_start(struct replay_server *s, const struct replay_plan *plan, bool clocked,
				 struct hx_error *err)
{
	enum hx_code code;

	*s = (struct replay_server){.clocked = clocked, .listen = "127.0.0.1:0"};
	code = write_folder(s, plan, err);
	if (!code)
		code = name_store(s, plan, err);
	if (!code && plan->result->tables.make)
		code = make_tables(s, plan->result->tables.make, err);
	return code ? code : start(s, err);
}

static void kill_it(struct replay_server *s)
{
	if (s->pid <= 0)
		return;
	(void)kill(s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

enum hx_code replay_server_kill(struct replay_server *s, struct hx_error *err)
{
	kill_it(s);
	return start(s, err);
}

void replay_server_pause(struct replay_server *s)
{
	if (s->clocked || s->pid <= 0)
		return;
	(void)kill(s->pid, SIGSTOP);
	nanosleep(&(const struct timespec){.tv_sec = PAUSE_S}, NULL);
	(void)kill(s->pid, SIGCONT);
}

enum hx_code replay_server_look(struct replay_server *s, const char *sql, struct strbuf *ret, struct hx_error *err)
{
	struct db_options options = {.url = s->db, .clock = clock_system()};
	struct db_stmt stmt = {.name = "replay_look", .in = "", .out = "t", .sql = sql};
	struct unit_result result;
	struct db *db = NULL;
	enum hx_code code;
	LOCAL_ARENA(arena, TEXT_BYTES_MAX);
	LOCAL_UNIT(unit);

	if (!sql || s->store)
		return HX_OK;
	kill_it(s);
	code = db_open(&options, &db, err);
	if (!code)
		code = db->driver->begin(db, err);
	if (!code) {
		unit_add(&unit, UNIT_ANY, &stmt, 0, NULL);
		code = db->driver->execute(db, (struct unit *[]){&unit}, 1, &result, &arena, err);
		if (!code)
			strbuf_add_slice(ret, db_cell(&result.rows[0], 0, 0)->s);
	}
	db_close(db);
	return code;
}

static void empty_folder(const char *path)
{
	DIR *dir = opendir(path);

	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		(void)unlinkat(dirfd(dir), entry->d_name, 0); /* not . and .., nor a folder */
	if (dir)
		closedir(dir);
	(void)rmdir(path);
}

void replay_server_stop(struct replay_server *s)
{
	char flows[60];

	kill_it(s);
	if (s->store)
		drop_schema(s);
	s->store = NULL;
	if (!s->folder[0])
		return;
	snprintf(flows, sizeof flows, "%s/flows", s->folder);
	empty_folder(flows);
	empty_folder(s->folder);
	s->folder[0] = '\0';
}
