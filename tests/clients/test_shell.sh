#!/usr/bin/env bash
# A client of a hundred lines of shell: the protocol is enough.
set -u
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/shell.py" "$here/../../examples/functions/worker.sh" "$(mktemp -d)/parcel.log"
