#!/bin/sh
# embed-web.sh FOLDER FILE… : writes the C file with the dashboard in it, the table of api/api_dashboard.h.
#
# Each file is there as it is sent: compressed, but for the page itself, which is small; our own scripts without the lines that
# only hold a comment. Its name is its path in the folder, its ETag is of the file.
set -eu
export LC_ALL=C
folder=$1
shift

type_of() { # file
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "embed-web: $1: of no kind that is served" >&2 && exit 1 ;;
	esac
}

here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packed() { # file
	case $1 in
	*.html) cat "$1" ;;
	*/vendor/* | *.svg | *.css) "$here/pack.sh" "$1" ;;
	*) sed '/^[[:space:]]*\/\/ /d' "$1" >"$work/bare" && "$here/pack.sh" "$work/bare" ;;
	esac
}

echo '/* Made by scripts/embed-web.sh out of web/; change the files there. */'
echo '#include "api/api_dashboard.h"'
n=0
for file; do
	echo "static const unsigned char bytes_$n[] = {"
	packed "$file" | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g'
	echo '};'
	n=$((n + 1))
done
echo 'const struct web_file web_files[] = {'
n=0
for file; do
	type=$(type_of "$file")
	hash=$(sha256sum <"$file" | cut -c1-32)
	gzip=true
	case $file in *.html) gzip=false ;; esac
	printf '\t{"%s", "%s", "\\"%s\\"", %s, bytes_%d, sizeof bytes_%d},\n' "${file#"$folder"/}" "$type" "$hash" "$gzip" "$n" "$n"
	n=$((n + 1))
done
echo '};'
echo "const size_t web_files_n = $n;"
