/* Jobs for an embedding program. See embed.h; the contract is in hapax.h. */
#include "base/id.h"
#include "engine/embed.h"
#include "flow/job.h"
#include "flow/single.h"

struct redrive {
	struct embed_call call;
	struct single single;
	int64_t subject;
};

static void build_redrive(const struct single *single, struct unit *unit)
{
	const struct redrive *r = single->context;

	job_redrive(unit, &single->stamp, r->call.who.workspace, r->subject);
}

static enum hx_code answered_redrive(struct single *single UNUSED, const struct unit_result *result)
{
	return job_redriven(result);
}

static enum hx_code redrive(struct redrive *r, struct hx_error *err)
{
	struct embed_reply *reply = r->call.reply;
	enum hx_code code;

	single_init(&r->single, r, build_redrive, answered_redrive);
	code = embed_carry_out(r->call.e, (uint64_t)r->subject, &r->single.task);
	if (code)
		return embed_refuse(err, code, job_redrive_detail(code));
	reply->result = (struct hx_result){
		.id = embed_text(reply, slice_str(id_text("job", r->subject).text)),
		.status = JOB_AVAILABLE,
		.created = 1,
	};
	return HX_OK;
}

enum hx_code hx_job_redrive(struct hx_engine *engine, const struct hx_caller *caller, const char *id,
			    struct hx_result **ret_result, struct hx_error *err)
{
	struct redrive r = {0};
	enum hx_code code = embed_begin(&r.call, engine, caller, err);

	if (code)
		return code;
	if (id_parse("job", slice_str(id), &r.subject))
		code = redrive(&r, err);
	else
		code = embed_refuse(err, HX_NOT_FOUND, job_redrive_detail(HX_NOT_FOUND));
	return embed_end(&r.call, code, /* also= */ HX_OK, ret_result, err);
}
