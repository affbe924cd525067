#!/usr/bin/env bash
# What `make clients` makes can be installed without the network, and is what clients/ has.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^.define HX_VERSION "\(.*\)"/\1/p' "$root/include/hapax.h")
result() { if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2"; fi; }

(cd "$root" && scripts/pack-clients.py "$version" "$work") && (cd "$root" && scripts/pack-clients.py "$version" "$work/again")
result $? packed
cmp "hapax-$version.tgz" "again/hapax-$version.tgz" && cmp "hapax-$version-py3-none-any.whl" "again/hapax-$version-py3-none-any.whl"
result $? the_same_bytes_each_time

# As npm does it; and by npm itself, where it is.
mkdir -p by-hand/node_modules/hapax && tar -xzf "hapax-$version.tgz" -C by-hand/node_modules/hapax --strip-components=1
cat >by-hand/try.mjs <<'.'
import hapax, { Final } from "hapax";
import * as all from "hapax";
const fn = hapax.function("f", { version: 2 }, async () => 1);
if (fn.version !== "2" || all.function !== hapax.function || !(new Final("x") instanceof Error) || hapax.duration("2m") !== 120000) process.exit(1);
for (const bad of ["0s", "-1s", "1.5s", "s", 0, null]) try { hapax.duration(bad); process.exit(1); } catch (error) { if (!(error instanceof TypeError)) throw error; }
.
node by-hand/try.mjs
result $? the_tarball_is_a_package
if command -v npm >/dev/null; then
	mkdir by-npm && cp by-hand/try.mjs by-npm/ && (cd by-npm && echo '{}' >package.json && npm install --offline --no-audit --no-fund --silent "$work/hapax-$version.tgz" && node try.mjs)
	result $? npm_installs_it_offline
fi

cat >try.py <<'.'
import hapax
fn = hapax.function("f", version=2)(lambda ctx, input: 1)
assert fn.version == "2" and hapax.duration("2m") == 120000 and "whl" in hapax.__file__ + "whl"
for bad in ("0s", "-1s", "1.5s", "s", 0, None):
    try:
        hapax.duration(bad)
    except TypeError:
        continue
    raise SystemExit(1)
.
PYTHONPATH=$work/hapax-$version-py3-none-any.whl python3 try.py
result $? the_wheel_is_a_package
python3 - "hapax-$version-py3-none-any.whl" <<'.'
import base64, hashlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record = [line.split(",") for line in wheel.read([n for n in wheel.namelist() if n.endswith("/RECORD")][0]).decode().split()]
assert sorted(r[0] for r in record) == sorted(wheel.namelist())
for name, digest, size in record:
    if digest:
        text = wheel.read(name)
        assert int(size) == len(text) and digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
.
result $? its_record_is_right
if python3 -m pip --version >/dev/null 2>&1; then
	python3 -m pip install -q --no-index --disable-pip-version-check --root-user-action=ignore --target by-pip "hapax-$version-py3-none-any.whl" && PYTHONPATH=by-pip python3 try.py
	result $? pip_installs_it_offline
fi
