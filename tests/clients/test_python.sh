#!/usr/bin/env bash
# clients/python against the engine's side of the protocol, as conformance.py plays it: with threads, and with coroutines.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/../../clients/python PYTHONDONTWRITEBYTECODE=1
# At the same time: both mostly wait.
HAPAX_CONFORMANCE=brief python3 "$here/conformance.py" asyncio "$here/functions_async.sh" >"${TMPDIR:-/tmp}/asyncio" 2>&1 &
asyncio=$!
python3 "$here/conformance.py" python python3 "$here/functions.py"
a=$?
wait "$asyncio"
b=$?
cat "${TMPDIR:-/tmp}/asyncio"
exit $((a + b))
