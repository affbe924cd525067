#!/usr/bin/env bash
# clients/python against the engine's side of the protocol, as conformance.py plays it: with threads, and with coroutines.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/../../clients/python PYTHONDONTWRITEBYTECODE=1
python3 "$here/conformance.py" python python3 "$here/functions.py"
a=$?
HAPAX_CONFORMANCE=brief python3 "$here/conformance.py" asyncio "$here/functions_async.sh"
exit $((a + $?))
