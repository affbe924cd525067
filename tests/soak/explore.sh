#!/usr/bin/env bash
# Ten million edges of one exploration: less than ten minutes of processor time, and memory that is bounded. HAPAX_EDGES has another number,
# of which the bar is a share. A machine that has more to do than processors says nothing about times, so none is looked at but the
# processor's. The default bound of the examples is measured besides, and the same seed must give the same bytes.
PYTHONDONTWRITEBYTECODE=1 exec python3 - <<'END'
import os, resource, subprocess, sys

HAPAX = os.path.join(os.environ.get("HAPAX_BUILD", "build"), "hapax")
EDGES = int(os.environ.get("HAPAX_EDGES", "10000000"))
EDGES_A_SECOND = 50000  # TRIAL_EDGES_A_SECOND
CPU_BAR = 600 * EDGES / 10000000
MEMORY_BAR = 1 << 30


def explore(*arguments):
	before = resource.getrusage(resource.RUSAGE_CHILDREN)
	done = subprocess.run([HAPAX, "explore", *arguments, "--brief"], capture_output=True, text=True)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judge(name, holds, words):
	print(f"# {words}")
	print("ok" if holds else "not ok", name)


for path in ("examples/order/order.json", "examples/billing/workflows"):
	done, cpu = explore(path)
	judge("the_default_bound_of_" + path.split("/")[1], cpu < 2, f"{path}: {cpu:.1f} s of a processor (goal: under 2)")
few = ("tests/explore/no-way-back.mended.json", "--seed", "7")
judge("the_same_seed_gives_the_same_bytes", explore(*few)[0].stdout == explore(*few)[0].stdout, "twice with seed 7")
done, cpu = explore("tests/explore/settled-while-cancelled.mended.json", "--crashes", "4", "--pauses", "4", "--lost", "4", "--failures", "4", "--mishaps", "9",
	"--seconds", str(max(1, EDGES // EDGES_A_SECOND)))
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
judge("it_is_bounded", done.returncode == 0 and "bounded: " in done.stdout, done.stdout.split("\n")[0])
judge("its_time", cpu < CPU_BAR, f"{EDGES} edges: {cpu:.0f} s of a processor (bar: {CPU_BAR:.0f})")
judge("its_memory", memory < MEMORY_BAR, f"{memory >> 20} MiB at most (bar: {MEMORY_BAR >> 20})")
END
