#!/usr/bin/env bash
# clients/js against the engine's side of the protocol, as conformance.py plays it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=${TMPDIR:-/tmp}
mkdir -p "$work/node_modules" && ln -sfn "$here/../../clients/js" "$work/node_modules/hapax" && cp "$here/functions.mjs" "$work/" || exit 1
exec python3 "$here/conformance.py" js node "$work/functions.mjs"
