#!/bin/sh
# embed-schema.sh FILE… : writes the C file that holds every migration's text.
#
# A file is named NNNN_name[.gate].sqlite.sql or NNNN_name[.gate].postgres.sql; what a new store runs in its place is in
# NNNN_name[.gate].base.STORE.sql (see src/db/migrate.h). The tables come out in the order of the numbers; a bad name
# or a number that is used twice for one store stops the build.
set -eu
export LC_ALL=C

fail() {
	echo "embed-schema: $*" >&2
	exit 1
}

# The text of one file as C string literals, one for each line; '?' is escaped because of trigraphs.
literal() {
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/?/\\?/g' -e 's/\t/\\t/g' -e 's/\r/\\r/g' -e 's/.*/\t\t"&\\n"/' "$1"
	[ -s "$1" ] || printf '\t\t""\n'
}

table() {
	store=$1
	shift
	last=0
	count=0
	echo
	echo "const struct db_migration_text db_schema_${store}[] = {"
	for file; do
		base=${file##*/}
		case $base in
		[0-9][0-9][0-9][0-9]_*.base.sqlite.sql | [0-9][0-9][0-9][0-9]_*.base.postgres.sql) continue ;;
		[0-9][0-9][0-9][0-9]_*."$store".sql) ;;
		[0-9][0-9][0-9][0-9]_*.sqlite.sql | [0-9][0-9][0-9][0-9]_*.postgres.sql) continue ;;
		*) fail "$file: expected NNNN_name.sqlite.sql or NNNN_name.postgres.sql" ;;
		esac
		number=$(echo "${base%%_*}" | awk '{ print $1 + 0 }')
		name=${base#*_}
		name=${name%."$store".sql}
		[ "$number" -gt "$last" ] || fail "$file: number $number is used twice or out of order"
		last=$number
		count=$((count + 1))
		gate=false
		case $name in *.gate) gate=true name=${name%.gate} ;; esac
		printf '\t{%s, "%s", %s,\n' "$number" "$name" "$gate"
		base=${file%."$store".sql}.base.$store.sql
		if [ -f "$base" ]; then literal "$base"; else printf '\t\t0\n'; fi
		printf '\t\t,\n'
		literal "$file"
		printf '\t},\n'
	done
	printf '\t{0, 0, 0, 0, 0},\n};\n'
	echo "const size_t db_schema_${store}_count = $count;"
}

echo '/* Made by scripts/embed-schema.sh out of src/db/schema; change the files there. */'
echo '#include "db/migrate.h"'
table sqlite "$@"
table postgres "$@"
