/* See ways.h. */
#include "flow/ways.h"

#include <string.h>

#include "flow/batch.h"
#include "flow/job.h"
#include "flow/run.h"

/* clang-format off */

const char *const run_statuses[] = {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_PAUSED, RUN_COMPLETED, RUN_FAILED,
					       RUN_CANCELLING, RUN_CANCELLED, NULL};
static const struct way of_runs[] = {
	{"create",  {""},                                                               {RUN_PENDING}},
	{"a node",  {RUN_PENDING, RUN_RUNNING, RUN_WAITING},
		    {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_COMPLETED, RUN_FAILED}},
	{"a node",  {RUN_PAUSED},                                                       {RUN_PAUSED, RUN_FAILED}},
	{"a node",  {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_PAUSED},                {RUN_CANCELLING}},
	{"a node",  {RUN_CANCELLING},                                                   {RUN_CANCELLING, RUN_CANCELLED}},
	{"cancel",  {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_PAUSED, RUN_FAILED},    {RUN_CANCELLING, RUN_CANCELLED}},
	{"its parent", {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_PAUSED, RUN_FAILED},    {RUN_CANCELLING, RUN_CANCELLED}},
	{"its parent", {RUN_COMPLETED},                                                 {RUN_CANCELLING}},
	{"pause",   {RUN_PENDING, RUN_RUNNING, RUN_WAITING},                            {RUN_PAUSED}},
	{"resume",  {RUN_PAUSED},                                                       {RUN_PENDING, RUN_RUNNING, RUN_WAITING}},
	{"retry",   {RUN_FAILED},                                                       {RUN_PENDING}},
	{"restart", {RUN_FAILED, RUN_COMPLETED},                                        {NULL}},
	{"migrate", {RUN_PENDING, RUN_WAITING, RUN_PAUSED, RUN_FAILED, RUN_CANCELLING}, {NULL}},
	{"retry",   {RUN_CANCELLING},                                                   {RUN_CANCELLING}},
	{"debounce", {RUN_PENDING},                                                     {NULL}},
	{"event",   {RUN_PENDING, RUN_RUNNING, RUN_WAITING, RUN_PAUSED},                {NULL}},
	{"approve", {RUN_PENDING, RUN_WAITING, RUN_PAUSED},                             {NULL}},
	{"resolve", {RUN_WAITING},                                                      {RUN_PENDING}},
	{"resolve", {RUN_PENDING, RUN_PAUSED, RUN_CANCELLING},                          {NULL}},
	{NULL, {NULL}, {NULL}},
};
const struct ways run_ways = {run_statuses, {RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED}, of_runs};

const char *const batch_statuses[] = {BATCH_LOADING, BATCH_PENDING, BATCH_QUEUED, BATCH_RUNNING, BATCH_OUT_OF_CREDIT,
						  BATCH_CANCELLING, BATCH_COMPLETED, BATCH_CANCELLED, BATCH_FAILED, NULL};
static const struct way of_batches[] = {
	{"create",        {""},                                  {BATCH_LOADING, BATCH_PENDING, BATCH_QUEUED}},
	{"its loader",    {BATCH_LOADING},                       {BATCH_LOADING, BATCH_PENDING, BATCH_QUEUED}},
	{"a lost loader", {BATCH_LOADING},                       {BATCH_PENDING, BATCH_FAILED}},
	{"add",           {BATCH_PENDING},                       {BATCH_LOADING}},
	{"start",         {BATCH_PENDING},                       {BATCH_QUEUED}},
	{"a node",        {BATCH_QUEUED, BATCH_OUT_OF_CREDIT},   {BATCH_RUNNING}},
	{"a node",        {BATCH_RUNNING},                       {BATCH_RUNNING, BATCH_OUT_OF_CREDIT, BATCH_COMPLETED}},
	{"cancel",        {BATCH_PENDING, BATCH_QUEUED, BATCH_RUNNING, BATCH_OUT_OF_CREDIT}, {BATCH_CANCELLING}},
	{"a node",        {BATCH_CANCELLING},                    {BATCH_CANCELLING, BATCH_CANCELLED}},
	{NULL, {NULL}, {NULL}},
};
const struct ways batch_ways = {batch_statuses, {BATCH_COMPLETED, BATCH_FAILED, BATCH_CANCELLED}, of_batches};

const char *const job_statuses[] = {JOB_AVAILABLE, JOB_RUNNING, JOB_RETRYING, JOB_COMPLETED, JOB_PARKED, NULL};
static const struct way of_jobs[] = {
	{"create",        {""},                                        {JOB_AVAILABLE}},
	{"claim",         {JOB_AVAILABLE, JOB_RETRYING},               {JOB_RUNNING}},
	{"its holder",    {JOB_RUNNING},                               {JOB_COMPLETED, JOB_RETRYING, JOB_PARKED}},
	{"a lost holder", {JOB_RUNNING},                               {JOB_AVAILABLE, JOB_RETRYING, JOB_PARKED}},
	{"its run",       {JOB_AVAILABLE, JOB_RETRYING, JOB_RUNNING},  {JOB_PARKED}},
	{"redrive",       {JOB_PARKED},                                {JOB_AVAILABLE}},
	{NULL, {NULL}, {NULL}},
};
const struct ways job_ways = {job_statuses, {JOB_COMPLETED, JOB_PARKED}, of_jobs};

static const char *const statuses_of_accounts[] = {"OPEN", NULL};
static const struct way of_accounts[] = {{"create", {""}, {"OPEN"}}, {NULL, {NULL}, {NULL}}};
const struct ways account_ways = {statuses_of_accounts, {NULL}, of_accounts};

/* clang-format on */

static bool has(const char *const *list, struct slice text)
{
	while (*list && !slice_is(text, *list))
		list++;
	return *list != NULL;
}

bool ways_lead(const struct ways *ways, const char *by, struct slice from, struct slice to)
{
	for (const struct way *way = ways->ways; way->by; way++)
		if ((!by || strcmp(by, way->by) == 0) && has(way->from, from) &&
		    (way->to[0] ? has(way->to, to) : slice_eq(from, to)))
			return true;
	return false;
}

bool ways_go_on(const struct ways *ways, struct slice from)
{
	const struct way *way = ways->ways;

	while (way->by && !has(way->from, from))
		way++;
	return way->by != NULL;
}

bool ways_is_terminal(const struct ways *ways, struct slice status)
{
	return has(ways->terminal, status);
}

const char *ways_status(const struct ways *ways, struct slice text)
{
	const char *const *status = ways->statuses;

	while (*status && !slice_is(text, *status))
		status++;
	return *status;
}

bool ways_have_ended(const struct ways *ways, struct slice status)
{
	return !ways_status(ways, status) || ways_is_terminal(ways, status);
}
