#!/bin/sh
# embed-schema.sh FILE… : writes the C file that holds every migration's text.
# embed-schema.sh --old STORE FILE : the text of one of them for the store of an older program, for tests.
#
# A file is named NNNN_name[.gate].sql (see src/db/migrate.h), and holds the text for both stores. It is written as SQLite
# wants it, and what PostgreSQL has in place of that is made of it:
#
#   INTEGER, TEXT, BLOB              bigint, text, bytea
#   INTEGER IDENTITY                 bigint GENERATED ALWAYS AS IDENTITY; of SQLite, where a key is one by itself: INTEGER
#   STRICT, WITHOUT ROWID, VIRTUAL   nothing, nothing, STORED
#   FILLFACTOR n, after STRICT       WITH (fillfactor = n); of SQLite: nothing
#   --@ only WORDS                   the lines from here on are for these alone: sqlite or postgres, old or new
#   --@ for all                      up to here
#   --@ a new store runs N… in place of this
#                                    its migrations with these numbers are for the store of an older program alone. A new one
#                                    runs them under this number, with hx_ where they have {hx_}; the old one has nothing there
#
# A text for one store alone may also be a file of its own, NNNN_name[.gate].sqlite.sql or .postgres.sql, which stays as it
# is. The tables come out in the order of the numbers; a bad name, a number that is used
# twice for one store, or one that is too high (MIGRATE_NUMBERS_MAX) stops the build.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/texts"

fail() {
	echo "embed-schema: $*" >&2
	exit 1
}

# The text of one file, for a store that is old or new.
render() { # store old|new file
	case $3 in *.sqlite.sql | *.postgres.sql) cat "$3" && return ;; esac
	awk -v store="$1" -v age="$2" -v file="$3" '
		function is_for(words, i, n, word) {
			n = split(words, word, " ")
			for (i = 1; i <= n; i++)
				if (word[i] !~ /^(sqlite|postgres|old|new)$/)
					stop("only " words)
				else if (word[i] != store && word[i] != age)
					return 0
			return 1
		}
		function stop(words) {
			print "embed-schema: " file ": not known: " words >"/dev/stderr"
			failed = 1
			exit 1
		}
		BEGIN { wanted = 1 }
		/^--@ only / { wanted = is_for(substr($0, 10)); next }
		/^--@ for all$/ { wanted = 1; next }
		/^--@ a new store runs [0-9 ]+ in place of this$/ { next }
		/^--@/ { stop($0) }
		!wanted { next }
		{ gsub(/[{]hx_[}]/, age == "new" ? "hx_" : "") }
		store == "sqlite" {
			gsub(/INTEGER IDENTITY/, "INTEGER")
			sub(/, FILLFACTOR [0-9]+;$/, ";")
		}
		store == "postgres" {
			gsub(/INTEGER IDENTITY/, "bigint GENERATED ALWAYS AS IDENTITY")
			gsub(/INTEGER/, "bigint")
			gsub(/TEXT/, "text")
			gsub(/BLOB/, "bytea")
			sub(/ VIRTUAL;$/, " STORED;")
			sub(/^\) STRICT(, WITHOUT ROWID)?/, ")")
			if (sub(/^\), FILLFACTOR /, ") WITH (fillfactor = "))
				sub(/;$/, ");")
		}
		{ print }
		END { exit failed }' "$3"
}

# Puts a text to the others, with a NUL after it, and says where it begins there.
place() {
	wc -c <"$work/texts" | tr -d ' '
	cat >>"$work/texts"
	printf '\0' >>"$work/texts"
}

# What a new store runs in place of a file, or nothing.
base() { # store file
	numbers=$(sed -n 's/^--@ a new store runs \([0-9 ]*\) in place of this$/\1/p' "$2")
	for number in $numbers; do
		for part in "${2%/*}/$number"_*; do render "$1" new "$part"; done
		echo
	done
}

# Where the texts of a file begin: for a new store in place of it, or -1; and for the others. Those of both stores stand side by
# side, and so what they have in common is packed once: it is found again within 32 KB.
place_file() { # file
	for store in sqlite postgres; do
		case $1 in *."$store".sql) ;; *.sqlite.sql | *.postgres.sql) continue ;; esac
		new=$(base "$store" "$1")
		[ -z "$new" ] || new=$(echo "$new" | place)
		old=$(render "$store" old "$1" && echo .) || exit 1
		echo "${new:--1}, $(printf '%s' "${old%.}" | place)" >"$work/${1##*/}.$store"
	done
}

table() {
	store=$1
	shift
	last=0
	count=0
	echo
	echo "const struct db_migration_text db_schema_${store}[] = {"
	for file; do
		name=${file##*/}
		case $name in
		[0-9][0-9][0-9][0-9]_*."$store".sql) ;;
		[0-9][0-9][0-9][0-9]_*.sqlite.sql | [0-9][0-9][0-9][0-9]_*.postgres.sql) continue ;;
		[0-9][0-9][0-9][0-9]_*.sql) ;;
		*) fail "$file: expected NNNN_name.sql" ;;
		esac
		number=$(echo "${name%%_*}" | awk '{ print $1 + 0 }')
		name=${name#*_}
		name=${name%.sql}
		name=${name%."$store"}
		[ "$number" -gt "$last" ] || fail "$file: number $number is used twice or out of order"
		last=$number
		count=$((count + 1))
		gate=false
		case $name in *.gate) gate=true name=${name%.gate} ;; esac
		case $name in *.*) fail "$file: expected NNNN_name.sql" ;; esac
		printf '\t{%s, "%s", %s, %s},\n' "$number" "$name" "$gate" "$(cat "$work/${file##*/}.$store")"
	done
	printf '\t{0, 0, 0, 0, 0},\n};\n'
	echo "const size_t db_schema_${store}_count = $count;"
	echo "_Static_assert($last < MIGRATE_NUMBERS_MAX, \"number $last of $store is too high: src/db/migrate.h\");"
}

if [ "${1-}" = --old ]; then
	render "$2" old "$3"
	exit
fi
echo '/* Made by scripts/embed-schema.sh out of src/db/schema; change the files there. */'
echo '#include "db/migrate.h"'
for file; do place_file "$file"; done
table sqlite "$@"
table postgres "$@"
"$(dirname "$0")/embed-packed.sh" db_schema_texts <"$work/texts"
