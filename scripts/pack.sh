#!/bin/sh
# pack.sh FILE : writes FILE compressed, in the format of gzip. By zopfli, which makes what the program carries 3 % smaller; where
# there is none, by gzip, and the program is that much larger.
set -eu
if command -v zopfli >/dev/null; then exec zopfli -c --gzip "$1"; fi
exec gzip -9 -n -c "$1"
