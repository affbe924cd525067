#!/bin/sh
# embed-text.sh NAME FILE : writes the C file in which the text of a file is `const char NAME[]`.
set -eu
export LC_ALL=C

echo "/* Made by scripts/embed-text.sh out of $2; change that. */"
echo "extern const char $1[];"
echo "const char $1[] ="
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/?/\\?/g' -e 's/\t/\\t/g' -e 's/.*/\t"&\\n"/' "$2"
echo '	"";'
