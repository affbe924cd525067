#!/usr/bin/env bash
# scripts/embed-schema.sh: what a C compiler reads back is the file, byte for byte; bad names stop the build.
set -u

script=$PWD/scripts/embed-schema.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

compile() { gcc -std=c17 -Wall -Werror -I. -Isrc -Iinclude "$@"; }

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

cat >"$dir/0001_first.sqlite.sql" <<'END'
-- quotes " ' and \n backslashes \\ and trigraphs ??/ ??= and	a tab, and ἅπαξ
CREATE TABLE t (id INTEGER PRIMARY KEY); -- % & |

END
: >"$dir/0001_first.postgres.sql"
printf 'SELECT 8;\n' >"$dir/0008_eighth.sqlite.sql"
cat >"$dir/packed.h" <<'END'
#include "src/base/packed.c"
#include <stdio.h>
#include <string.h>
void assert_failed(const char *cond, const char *file, int line)
{
	printf("%s:%d: %s\n", file, line, cond);
	abort();
}
END
cat >"$dir/main.c" <<'END'
#include "schema.c"
#include "packed.h"
int main(void)
{
	char *texts = packed_text(&db_schema_texts);

	fputs(texts + db_schema_sqlite[0].text_at, stdout);
	return !(db_schema_sqlite_count == 2 && db_schema_postgres_count == 1 && db_schema_sqlite[0].number == 1 &&
		 db_schema_sqlite[1].number == 8 && !strcmp(db_schema_sqlite[1].name, "eighth") &&
		 !strcmp(texts + db_schema_postgres[0].text_at, ""));
}
END

"$script" "$dir"/0*.sql >"$dir/schema.c" && compile -o "$dir/main" "$dir/main.c" -lz
result the_generated_file_compiles
"$dir/main" >"$dir/text"
result numbers_names_and_counts_are_right
cmp "$dir/text" "$dir/0001_first.sqlite.sql"
result the_text_is_the_file

cp "$dir/0008_eighth.sqlite.sql" "$dir/0008_again.sqlite.sql"
! "$script" "$dir"/0*.sql >/dev/null 2>&1
result a_number_used_twice_is_refused
! "$script" "$dir/0001_first.mysql.sql" >/dev/null 2>&1
result an_unknown_store_is_refused

# The highest number that there can be, and the one after it, for either store.
max=$(sed -n 's/^#define MIGRATE_NUMBERS_MAX //p' src/db/migrate.h)
builds() { # file of the highest number
	"$script" "$dir/0001_first.sqlite.sql" "$dir/$1" >"$dir/far.c" && gcc -std=c17 -Isrc -Iinclude -fsyntax-only "$dir/far.c"
}
touch "$dir/$((max - 1))_last.sql" "$dir/${max}_far.sqlite.sql" "$dir/${max}_far.postgres.sql"
builds "$((max - 1))_last.sql"
result the_highest_number_builds
! builds "${max}_far.sqlite.sql" 2>"$dir/words" && grep -q "number $max of sqlite is too high" "$dir/words" &&
	! builds "${max}_far.postgres.sql" 2>"$dir/words" && grep -q "number $max of postgres is too high" "$dir/words"
result a_number_that_is_too_high_stops_the_build

# One file for both stores, old and new.
mkdir "$dir/both"
cat >"$dir/both/0001_plain.sql" <<'END'
CREATE TABLE {hx_}t (
  id   INTEGER IDENTITY PRIMARY KEY,
  name TEXT    NOT NULL,
  body BLOB
) STRICT, WITHOUT ROWID, FILLFACTOR 80;
--@ only postgres new
SELECT 'postgres, new';
--@ only old
SELECT 'old';
--@ for all
SELECT 'all';
END
printf '%s\n' '--@ a new store runs 0001 in place of this' 'ALTER TABLE t RENAME TO hx_t;' >"$dir/both/0002_named.gate.sql"
cat >"$dir/both.c" <<'END'
#include "both/schema.c"
#include "packed.h"
static int is(const char *text, const char *wanted)
{
	if (strcmp(text, wanted))
		printf("got:\n%s\nwanted:\n%s\n", text, wanted);
	return !strcmp(text, wanted);
}
int main(void)
{
	char *texts = packed_text(&db_schema_texts);

	return !(is(texts + db_schema_sqlite[0].text_at,
		    "CREATE TABLE t (\n  id   INTEGER PRIMARY KEY,\n  name TEXT    NOT NULL,\n  body BLOB\n"
		    ") STRICT, WITHOUT ROWID;\nSELECT 'old';\nSELECT 'all';\n") &&
		 is(texts + db_schema_postgres[0].text_at,
		    "CREATE TABLE t (\n  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
		    "  name text    NOT NULL,\n  body bytea\n) WITH (fillfactor = 80);\nSELECT 'old';\nSELECT 'all';\n") &&
		 is(texts + db_schema_postgres[1].base_at,
		    "CREATE TABLE hx_t (\n  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
		    "  name text    NOT NULL,\n  body bytea\n) WITH (fillfactor = 80);\n"
		    "SELECT 'postgres, new';\nSELECT 'all';\n") &&
		 is(texts + db_schema_sqlite[1].text_at, "ALTER TABLE t RENAME TO hx_t;\n") && db_schema_sqlite[1].gate &&
		 db_schema_sqlite[0].base_at < 0 && is(db_schema_sqlite[1].name, "named"));
}
END
"$script" "$dir"/both/0*.sql >"$dir/both/schema.c" &&
	compile -o "$dir/both/main" "$dir/both.c" -lz && "$dir/both/main"
result one_text_becomes_that_of_each_store
echo '--@ only mysql' >"$dir/both/0003_bad.sql"
! "$script" "$dir"/both/0*.sql >/dev/null 2>&1
result an_unknown_word_stops_the_build

"$script" >"$dir/schema.c" && grep -q 'db_schema_sqlite_count = 0' "$dir/schema.c"
result no_migration_at_all_is_fine
exit 0
