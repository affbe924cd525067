#!/usr/bin/env bash
# `make bench` as a whole, with a handful of each thing: all of its scripts run from beginning to end, every number gets onto the
# page, and the page is one that opens anywhere. What the numbers are is for the benchmark itself.
build=${HAPAX_BUILD:-build}
if [ ! -x "$build/bench/load" ] || grep -qE "__(asan|tsan)_init" "$build/hapax"; then
	echo "ok no_benchmark_in_this_build"
	exit 0
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench:tests/support
exec python3 - <<'END'
import json, os, pathlib, shutil, signal, subprocess
import bench, bench_folder, report

HANDFUL = {"ROUNDS": "1", "SQLITE_MOVES": "1024", "PG_MOVES": "1024", "GATE_REQUESTS": "256", "RUNS": "80", "JOBS": "200", "PICKUPS": "3", "CALLS": "200", "WAYS": "8 32",
	"LANE_MOVES": "1024", "SIZES": "20 40", "DISK_SECONDS": "1", "IDLE_SECONDS": "0.1", "SIZE": "0.01"}
folder = bench_folder.make()


def run(**env):
	return subprocess.Popen(["bench/bench.py"], env={**os.environ, **HANDFUL, **env, "HAPAX_BUILD": str(folder)}, text=True,
		stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def the_whole_benchmark_runs_and_its_page_is_written():
	command = run()
	out, err = command.communicate(timeout=500)
	assert command.returncode == 0, out[-2000:] + err[-3000:]
	assert "took " in out and "report.html" in out, out[-500:]
	raw = json.loads((folder / "bench" / "raw.json").read_text())
	assert raw["failed"] == [] and set(raw["parts"]) == set(bench.PARTS) and raw["machine"]["disk_syncs_per_second"] > 0, raw["machine"]
	for part, body in raw["parts"].items():
		assert body["verdicts"] and all(n > 0 for rounds in body["results"].values() for r in rounds for n in r[:1]), part
	page = report.read((folder / "bench" / "report.html").read_text())
	assert page.drawings == 7 and len(page.tiles) == 4 and "–" not in page.tiles, (page.drawings, page.tiles)
	assert all(v["words"] in page.words for b in raw["parts"].values() for v in b["verdicts"] if v["bar"] is not None)


def a_part_that_fails_is_said_and_does_not_stop_it():
	(folder / "bench" / "echo").unlink()
	command = run(PARTS="gate start", ROUNDS="1")
	out, err = command.communicate(timeout=300)
	assert command.returncode == 1 and "bench/gate.sh FAILED" in out, out[-500:] + err[-500:]
	page = report.read((folder / "bench" / "report.html").read_text())
	assert "These parts failed" in page.words and "start to ready" in page.words


def nothing_is_left_running_after_ctrl_c():
	command = run(PARTS="start", IDLE_SECONDS="600", ROUNDS="1")
	servers = bench_folder.until(lambda: bench_folder.servers_of(command.pid))
	assert servers, "no server was started"
	command.send_signal(signal.SIGTERM)
	assert command.wait(timeout=60) == 130
	assert bench_folder.until(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in servers)), f"left running: {servers}"


bench_folder.run_tests(the_whole_benchmark_runs_and_its_page_is_written, a_part_that_fails_is_said_and_does_not_stop_it,
	nothing_is_left_running_after_ctrl_c)
shutil.rmtree(folder)
END
