/* Jobs for an embedding program. See embed.h; the contract is in hapax.h. */
#include "base/id.h"
#include "engine/embed.h"
#include "flow/job.h"
#include "flow/single.h"

struct redrive {
	struct single single;
	struct embed_who who;
	int64_t subject;
};

static void build_redrive(const struct single *single, struct unit *unit)
{
	const struct redrive *r = single->context;

	job_redrive(unit, &single->stamp, r->who.workspace, r->subject);
}

static enum hx_code answered_redrive(struct single *single, const struct unit_result *result)
{
	(void)single;
	return job_redriven(result);
}

static enum hx_code redrive(struct hx_engine *e, struct redrive *r, struct embed_reply *reply, struct hx_error *err)
{
	char id[ID_TEXT_BYTES];
	enum hx_code code;

	single_init(&r->single, r, build_redrive, answered_redrive);
	code = embed_carry_out(e, (uint64_t)r->subject, &r->single.task);
	if (code)
		return embed_refuse(err, code, job_redrive_detail(code));
	id_format("job", r->subject, id);
	reply->result = (struct hx_result){
		.id = embed_text(reply, slice_str(id)),
		.status = JOB_AVAILABLE,
		.created = 1,
	};
	return HX_OK;
}

enum hx_code hx_job_redrive(struct hx_engine *engine, const struct hx_caller *caller, const char *id,
			    struct hx_result **ret_result, struct hx_error *err)
{
	struct redrive r = {0};
	struct embed_reply *reply = NULL;
	enum hx_code code = embed_enter(engine, err);

	if (code)
		return code;
	code = embed_who(caller, &r.who, err);
	if (!code && !id_parse("job", slice_str(id), &r.subject))
		code = embed_refuse(err, HX_NOT_FOUND, job_redrive_detail(HX_NOT_FOUND));
	if (!code) {
		reply = embed_reply_new();
		code = reply ? redrive(engine, &r, reply, err) : error_set(err, HX_NO_MEMORY, "a result");
	}
	if (reply)
		code = embed_reply_give(reply, code, /* also= */ HX_OK, ret_result, err);
	embed_leave(engine);
	return code;
}
