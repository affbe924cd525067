#!/usr/bin/env bash
# scripts/embed-schema.sh: what a C compiler reads back is the file, byte for byte; bad names stop the build.
set -u

script=$PWD/scripts/embed-schema.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

cat >"$dir/0001_first.sqlite.sql" <<'END'
-- quotes " ' and \n backslashes \\ and trigraphs ??/ ??= and	a tab, and ἅπαξ
CREATE TABLE t (id INTEGER PRIMARY KEY); -- % & |

END
: >"$dir/0001_first.postgres.sql"
printf 'SELECT 8;\n' >"$dir/0008_eighth.sqlite.sql"
cat >"$dir/main.c" <<'END'
#include "schema.c"
#include <stdio.h>
#include <string.h>
int main(void)
{
	fputs(db_schema_sqlite[0].text, stdout);
	return !(db_schema_sqlite_count == 2 && db_schema_postgres_count == 1 && db_schema_sqlite[0].number == 1 &&
		 db_schema_sqlite[1].number == 8 && !strcmp(db_schema_sqlite[1].name, "eighth") &&
		 !strcmp(db_schema_postgres[0].text, ""));
}
END

"$script" "$dir"/0*.sql >"$dir/schema.c" && gcc -std=c17 -Wall -Werror -Isrc -Iinclude -o "$dir/main" "$dir/main.c"
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
"$script" >"$dir/schema.c" && grep -q 'db_schema_sqlite_count = 0' "$dir/schema.c"
result no_migration_at_all_is_fine
exit 0
