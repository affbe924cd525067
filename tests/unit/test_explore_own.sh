#!/usr/bin/env bash
# No false alarm: every definition in examples and on the pages is clean, or docs/explore.md says in words what is found in it.
PYTHONDONTWRITEBYTECODE=1 exec python3 - <<'END2'
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "tests/support"))
import definitions  # noqa: E402

HAPAX = os.path.join(os.environ.get("HAPAX_BUILD", ROOT / "build"), "hapax")
if not os.access(HAPAX, os.X_OK):
	print("[  SKIPPED ] the program is not built in this flavour")
	sys.exit(0)


def explore(path, *more):
	done = subprocess.run([HAPAX, "explore", path, "--mishaps", "1", "--seconds", "1", "--json", "--brief", *more], capture_output=True, text=True)
	if done.returncode == 2:
		return None, done.stderr
	report = json.loads(done.stdout)
	return report.get("found", {}).get("rule", "clean"), done.stdout


said = {(m[1], m[2]): m[3] for m in re.finditer(r"^\| `([^`]+)`, `([^`]+)` \| (\w+): ", (ROOT / "docs/explore.md").read_text(), re.M)}
seen, bad = {}, []
with tempfile.TemporaryDirectory() as folder:
	for place, name, path, world in definitions.every(ROOT, folder, HAPAX):
		seen[place, name] = explore(path, *(["--world", world] if world else []))[0]
# The classic mistakes are there to be found: test_cli_explore.sh says how.
meant = {key for key in seen if re.match(r"examples/explore/[^/]+$", key[0]) and ".mended." not in key[0]}
for key, rule in seen.items():
	if key not in meant and rule != said.get(key, "clean"):
		bad.append(f"{key}: {rule}, and docs/explore.md says {said.get(key, 'nothing')}")
for key in said:
	if key not in seen:
		bad.append(f"{key} stands in docs/explore.md, and nowhere else")
for key in meant:
	if seen[key] in (None, "clean"):
		bad.append(f"{key}: nothing was found")
print(f"{len(seen)} definitions, {sum(rule not in (None, 'clean') for rule in seen.values())} with a finding")
print("not ok" if bad or len(seen) < 20 else "ok", "every_definition_is_clean_or_says_what_is_found")
print("\n".join(bad))
END2
