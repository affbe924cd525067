/* See reads.h. */
#include "sim/reads.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define ASK_AGAIN 1000 /* one in so many */

/* One allocation: this, the rows, their cells, the bytes of these. */
struct read_answer {
	uint64_t key;
	struct read_answer *next; /* of those that were replaced */
	enum unit_verdict verdict;
	int line;
	unsigned lines_n;
	struct db_rows rows[];
};

void reads_init(struct reads *reads, size_t slots_n)
{
	*reads = (struct reads){.slots_n = slots_n, .slots = calloc(slots_n, sizeof(struct read_answer *))};
	ASSERT(reads->slots);
}

void reads_release(struct reads *reads)
{
	reads_let_go(reads);
	for (size_t i = 0; reads->slots && i < reads->slots_n; i++)
		free(reads->slots[i]);
	free(reads->slots);
	reads->slots = NULL;
}

bool reads_only(const struct unit *unit)
{
	for (unsigned i = 0; i < unit->lines_n; i++)
		if (unit->lines[i].rule != UNIT_ANY || strncmp(unit->lines[i].stmt->sql, "SELECT", 6) != 0)
			return false;
	return true;
}

static uint64_t mix_value(uint64_t hash, const struct db_value *v)
{
	hash = hash_mix(hash, v->type);
	if (v->type == DB_INT)
		return hash_mix(hash, (uint64_t)v->i);
	return v->type == DB_NULL ? hash : hash_bytes(hash_mix(hash, v->s.n), v->s.p, v->s.n);
}

uint64_t reads_key(const struct unit *unit, uint64_t store, int64_t now_ms)
{
	uint64_t key = hash_mix(hash_mix(1, store), (uint64_t)now_ms);

	for (unsigned i = 0; i < unit->lines_n; i++) {
		const struct unit_line *line = &unit->lines[i];

		key = hash_mix(hash_mix(key, (uintptr_t)line->stmt), line->rule);
		for (unsigned p = 0; p < line->params_n; p++)
			key = mix_value(key, &line->params[p]);
	}
	return key;
}

static struct read_answer **reads_slot_of(const struct reads *reads, uint64_t key)
{
	return &reads->slots[key & (reads->slots_n - 1)];
}

bool reads_find(struct reads *reads, uint64_t key, struct unit_result *ret_result)
{
	const struct read_answer *answer = *reads_slot_of(reads, key);

	if (!answer || answer->key != key)
		return false;
	reads->found_n++;
	ret_result->verdict = answer->verdict;
	ret_result->line = answer->line;
	memcpy(ret_result->rows, answer->rows, answer->lines_n * sizeof *answer->rows);
	return true;
}

static size_t cells_of(const struct db_rows *rows)
{
	return rows->n * rows->columns;
}

bool reads_is_due(const struct reads *reads)
{
	return reads->found_n % ASK_AGAIN == 0;
}

static bool has_bytes(const struct db_value *v)
{
	return v->type == DB_TEXT || v->type == DB_BLOB;
}

static bool same_value(const struct db_value *a, const struct db_value *b)
{
	if (a->type != b->type || a->type == DB_NULL)
		return a->type == b->type;
	return has_bytes(a) ? slice_eq(a->s, b->s) : a->i == b->i;
}

bool reads_same(const struct unit *unit, const struct unit_result *a, const struct unit_result *b)
{
	for (unsigned i = 0; i < unit->lines_n; i++) {
		if (a->rows[i].n != b->rows[i].n || a->rows[i].columns != b->rows[i].columns)
			return false;
		for (size_t c = 0; c < cells_of(&a->rows[i]); c++)
			if (!same_value(&a->rows[i].cells[c], &b->rows[i].cells[c]))
				return false;
	}
	return a->verdict == b->verdict;
}

static size_t size_of(const struct unit *unit, const struct unit_result *result)
{
	size_t size = sizeof(struct read_answer) + unit->lines_n * sizeof(struct db_rows);

	for (unsigned i = 0; i < unit->lines_n; i++) {
		const struct db_rows *rows = &result->rows[i];

		size += cells_of(rows) * sizeof(struct db_value);
		for (size_t c = 0; c < cells_of(rows); c++)
			size += has_bytes(&rows->cells[c]) ? rows->cells[c].s.n + 1 : 0;
	}
	return size;
}

/* Copies the cells of all lines, and after them their bytes, each with a NUL as the driver has it. */
static void reads_fill(struct read_answer *answer, const struct unit_result *result)
{
	struct db_value *cell = (struct db_value *)(void *)(answer->rows + answer->lines_n);
	char *bytes;

	for (unsigned i = 0; i < answer->lines_n; i++) {
		answer->rows[i] = result->rows[i];
		answer->rows[i].cells = cell;
		for (size_t c = 0; c < cells_of(&result->rows[i]); c++)
			*cell++ = result->rows[i].cells[c];
	}
	bytes = (char *)cell;
	for (struct db_value *v = (struct db_value *)(void *)(answer->rows + answer->lines_n); v < cell; v++) {
		if (!has_bytes(v))
			continue;
		if (v->s.n)
			memcpy(bytes, v->s.p, v->s.n);
		bytes[v->s.n] = '\0';
		v->s.p = bytes;
		bytes += v->s.n + 1;
	}
}

void reads_keep(struct reads *reads, uint64_t key, const struct unit *unit, const struct unit_result *result)
{
	struct read_answer **slot = reads_slot_of(reads, key), *answer = malloc(size_of(unit, result));

	ASSERT(answer);
	answer->key = key;
	answer->verdict = result->verdict;
	answer->line = result->line;
	answer->lines_n = unit->lines_n;
	reads_fill(answer, result);
	if (*slot) {
		(*slot)->next = reads->replaced;
		reads->replaced = *slot;
	}
	*slot = answer;
}

void reads_let_go(struct reads *reads)
{
	while (reads->replaced) {
		struct read_answer *answer = reads->replaced;

		reads->replaced = answer->next;
		free(answer);
	}
}
