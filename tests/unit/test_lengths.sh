#!/usr/bin/env bash
# No file of C is longer than 700 lines and no function than 50, in what is shipped and in what tries it: one that is has two ideas.
# A function is what stands between braces in the first column, as clang-format leaves them; a table that is longer stands before it.
set -u
. tests/support/notes.sh

too_long() { # folder…
	find "$@" -name '*.[ch]' -print0 | xargs -0 awk '
		FNR == 1 { if (lines > 700) print file ": " lines " lines"; file = FILENAME; begun = 0 }
		{ lines = FNR }
		/^\{$/ { begun = FNR }
		/^\}/ && begun { if (FNR - begun > 50) print FILENAME ":" begun ": a function of " FNR - begun " lines"; begun = 0 }
		END { if (lines > 700) print file ": " lines " lines" }'
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
write_function() { # lines file
	printf 'static void f(void)\n{\n' >"$folder/$2"
	yes ';' | head -n $(($1 - 1)) >>"$folder/$2"
	echo '}' >>"$folder/$2"
}
write_function 51 long.c
write_function 50 right.c
yes '' | head -n 701 >"$folder/long.h"
yes '' | head -n 700 >"$folder/right.h"
found=$(too_long "$folder" | sed "s,$folder/,," | sort | tr '\n' ';')
[ "$found" = 'long.c:2: a function of 51 lines;long.h: 701 lines;' ] || note "found: $found"
result one_line_too_many_is_found

while read -r line; do note "$line"; done < <(too_long include src bench examples tests)
result nothing_is_too_long
exit 0
