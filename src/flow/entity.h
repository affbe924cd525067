/*
 * The entity: a subject with a name of the user's and data, moved by the steps of its workflow.
 *
 * A `struct entity_machine` is a workflow made ready for the store: its number in subject.kind and the statements
 * of its sql actions. It lives as long as the program, because connections know prepared statements by address.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "flow/entity_call.h"
#include "flow/entity_table.h"
#include "flow/kept_call.h"
#include "flow/sql_action.h"
#include "flow/subject.h"
#include "model/workflow.h"

#define ENTITY_NAME_MAX 255          /* bytes */
#define ENTITY_DATA_MAX (1u << 20)   /* of what callers write */
#define ENTITY_SAVED_MAX (24u << 20) /* with what steps save: what was done can always be written */

/* 1 to ENTITY_NAME_MAX bytes of UTF-8 without control characters; also of a workspace and a requester. */
bool entity_name_is_good(struct slice name);

struct entity_machine {
	const struct workflow *workflow;
	int64_t version; /* of the definition, in the store */
	int64_t kind;
	struct sql_action *sql;           /* one per action of the workflow, empty for those that are not sql */
	const struct entity_table *table; /* the user's own; NULL: the engine keeps the entity */
};

/* What subjects of this workflow are of. */
int64_t entity_kind(struct slice workflow);
/* NULL when the arena is full. The workflow and the arena must live as long as the program. */
const struct entity_machine *entity_machine_new(const struct workflow *workflow, int64_t version,
						const struct entity_table *table, struct arena *arena);

/* Which entity. Texts are borrowed. */
struct entity_ref {
	struct slice workspace;
	const struct entity_machine *machine;
	struct slice name;
};

/* Its lane: by its name, so that it needs no look-up. */
uint64_t entity_hash(struct slice workspace, const char *workflow, struct slice name);

/* ---- units ---- */

/* What it is searched by, with this data: as it is kept, in the arena. .p NULL: nothing. Pure. */
struct slice entity_describe(const struct entity_machine *machine, struct slice data, struct arena *arena);
/* A new one in the workflow's first status, as the subject of the given id. LOST: the name is taken. attributes: entity_describe() */
void entity_create(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, int64_t subject,
		   struct slice data, struct slice attributes);

/*
 * Its data, by a call that raises the version, in the same status. LOST: the version is another by now, somebody has claimed it, or a call
 * for it is in doubt: that one was made with the data as it is. Row of line 0: version reached, fence.
 */
void entity_change(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *status, int64_t version,
		   struct slice data);
/* After a finish in its unit: its data with what the step saves. */
void entity_save(struct unit *unit, int64_t subject, struct slice data);

/* The shadow of a row of the user's table, under the id as the row itself spells it. LOST: there is one by now. */
void entity_adopt(struct unit *unit, const struct stamp *stamp, const struct entity_ref *ref, struct slice name,
		  int64_t subject, const char *status);

/* Columns of entity_read, in order. */
enum {
	ENTITY_SUBJECT,
	ENTITY_STATUS,
	ENTITY_VERSION,
	ENTITY_FENCE,
	ENTITY_EFFORT,
	ENTITY_OWNER,
	ENTITY_UNTIL,
	ENTITY_UPDATED_AT,
	ENTITY_DATA,
	ENTITY_NAME,
	ENTITY_WORKSPACE, /* empty in a table of the user's */
	ENTITY_DOUBT,
	ENTITY_ATTRIBUTES, /* as they are kept; NULL: none */
	/* The call of the last claim. */
	ENTITY_CLAIM_STEP,
	ENTITY_CLAIM_FROM, /* the status that the step started from: with the key it names the step */
	ENTITY_CLAIM_REQUESTER,
	ENTITY_CLAIM_INPUT,
	ENTITY_CLAIM_EFFORT, /* of its key; NULL: it is not known any more, or put away (kept_call.h) */
	ENTITY_CLAIM_ADDRESS,
	ENTITY_CLAIM_VERSION, /* of the definition that the call is made by; NULL: noted before there was such a column */
	/* A call that is kept of the step which was asked for, NULL: none is; a row for each. Lists and entity_read_bare() do not have it. */
	ENTITY_KEPT_STEP,
	ENTITY_KEPT_FROM,
	ENTITY_KEPT_REQUESTER,
	ENTITY_KEPT_INPUT,
	ENTITY_KEPT_EFFORT,
	ENTITY_KEPT_ADDRESS,
	ENTITY_KEPT_VERSION,
	ENTITY_KEPT_DATA,
	ENTITY_COLUMNS
};
#define ENTITY_LIST_OUT "itiiitiitttitttttiti" /* their types */
#define ENTITY_OUT ENTITY_LIST_OUT KEPT_CALL_OUT
/* With the calls that are kept of this step, the last one first; empty: with that of any which was begun last. */
void entity_read(struct unit *unit, const struct entity_ref *ref, struct slice step);
/* As a list has it, of an entity that the engine keeps: what is kept of its calls costs a look into another table. */
void entity_read_bare(struct unit *unit, const struct entity_ref *ref);
/* What was read, in debug builds. */
void entity_assert_valid(const struct entity_machine *machine, const struct db_rows *rows);
/* By its subject, with the calls that are kept of the step that has claimed it last, for janitors. */
void entity_read_subject(struct unit *unit, int64_t subject);
/* By name after `after` (the user's table: by id); status empty: any; held: only those parked for a person. */
void entity_list(struct unit *unit, const struct entity_ref *ref, struct slice status, bool held, struct slice after,
		 int64_t limit);
/* Those of these subjects, JSON, that are of the workspace, in whatever order. */
void entity_list_these(struct unit *unit, struct slice workspace, struct slice subjects);

/*
 * A claim for this call, of an entity that the engine keeps. LOST: the entity is not as it was read any more; or, although it is,
 * another call of the step was written down since, or one was answered. Row of line 0: version reached, fence, effort.
 */
void entity_claim(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		  int64_t lease_ms, const struct entity_sent *call);
/* After a claim in its unit; from: the status that it came from, by the definition in force. LOST: the call that is kept was answered by now. */
void entity_note_claim(struct unit *unit, int64_t subject, const char *from, const struct entity_sent *call);
