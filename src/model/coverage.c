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
#include "model/requester.h"

static void report_uncovered(const struct workflow *w, const struct step *step, const char *claim_into,
			     bool module_known, struct findings *findings)
{
	bool views[WORKFLOW_REQUESTERS_MAX + 1] = {false};
	char requesters[REQUESTER_LIST_BYTES];
	size_t line = 0;

	for (size_t v = 0; v <= w->requesters_n; v++) {
		views[v] = step->views[v].claim_into && strcmp(step->views[v].claim_into, claim_into) == 0;
		if (views[v] && !line)
			line = step->views[v].claim_line;
	}
	requester_list(w, views, requesters);
	findings_add(
		findings,
		(struct finding){.severity = FINDING_ERROR,
				 .file = w->file,
				 .line = line,
				 .workflow = w->name,
				 .step = step->step_key,
				 .requester = requesters,
				 .rule = "coverage"},
		"no janitor covers the claim \"%s\": module %s %s; add \"modules\": {\"%s\": {\"janitor\": {}}} to "
		"the configuration",
		claim_into, w->module, module_known ? "declares no janitor" : "is not in the configuration", w->module);
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
				report_uncovered(w, &w->steps[i], into, module, findings);
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
