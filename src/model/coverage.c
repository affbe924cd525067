/*
 * Coverage: a claim that nobody would ever revert is refused before anything is served.
 *
 *   declared: every claim_into of every step, as any requester sees it, with the module that owns the workflow
 *   covered:  every module whose configuration declares a janitor, ours or an external one
 *
 * A new claim in a module without a janitor is thus found at boot, not at the first crash in the middle of an action.
 */
#include "model/config.h"
#include "model/lookup.h"
#include "model/nearest.h"
#include "model/requester.h"

/* A module with a janitor whose name is nearly this one; NULL: none. */
static const char *meant_module(const struct config *config, const char *name)
{
	const char *known[CONFIG_MODULES_MAX + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; i < config->modules_n; i++)
		if (config->modules[i].janitor.declared)
			known[n++] = config->modules[i].name;
	return nearest_name(slice_str(name), known);
}

static void report_uncovered(const struct workflow *w, const struct step *step, const char *claim_into,
			     const struct config *config, struct findings *findings)
{
	bool module_known = config_module(config, slice_str(w->module));
	const char *meant = module_known ? NULL : meant_module(config, w->module);
	bool views[WORKFLOW_REQUESTERS_MAX + 1] = {false};
	char requesters[REQUESTER_LIST_BYTES];
	size_t line = 0;

	for (size_t v = 0; v <= w->requesters_n; v++) {
		views[v] = step->views[v].claim_into && strcmp(step->views[v].claim_into, claim_into) == 0;
		if (views[v] && !line)
			line = step->views[v].claim_line;
	}
	requester_list(w, views, requesters);
	findings_add(findings,
		     (struct finding){.severity = FINDING_ERROR,
				      .file = w->file,
				      .line = line,
				      .workflow = w->name,
				      .step = step->step_key,
				      .requester = requesters,
				      .rule = "coverage"},
		     "no janitor covers the claim \"%s\": module %s %s; %s\"%s\"%s", claim_into, w->module,
		     module_known ? "declares no janitor" : "is not in the configuration",
		     meant ? "did you mean " : "add \"modules\": {", meant ? meant : w->module,
		     meant ? "?" : ": {\"janitor\": {}}} to the configuration");
}

static void check_workflow(const struct workflow *w, const struct config *config, struct findings *findings)
{
	const struct module_config *module = config_module(config, slice_str(w->module));
	bool said[WORKFLOW_STATUSES_MAX] = {false};

	if (module && module->janitor.declared)
		return;
	for (size_t i = 0; i < w->steps_n; i++) {
		for (size_t v = 0; v <= w->requesters_n; v++) {
			const char *into = w->steps[i].views[v].claim_into;

			if (!into)
				continue;

			size_t at = (size_t)(index_status(w->index, slice_str(into)) - w->index->statuses);

			if (!said[at])
				report_uncovered(w, &w->steps[i], into, config, findings);
			said[at] = true;
		}
	}
}

void coverage_check(const struct workflow *const *workflows, size_t n, const struct config *config,
		    struct findings *findings)
{
	for (size_t i = 0; i < n; i++)
		check_workflow(workflows[i], config, findings);
}
