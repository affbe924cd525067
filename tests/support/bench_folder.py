"""bench_folder.py : a build folder of a test's own, in which a benchmark writes its page, and the processes that it starts."""

import os
import pathlib
import tempfile
import time

build = pathlib.Path(os.environ["HAPAX_BUILD"]).resolve()


def make():
	"""A temporary folder with the programs of the build in it, by links."""
	folder = pathlib.Path(tempfile.mkdtemp())
	(folder / "bench").mkdir()
	programs = [p.relative_to(build) for p in (build / "bench").iterdir() if p.is_file() and os.access(p, os.X_OK)]
	for program in ("hapax", *programs):
		os.symlink(build / program, folder / program)
	return folder


def servers_of(pid):
	"""Servers of the program among all that this process has started."""
	found, parents = [], [str(pid)]
	while parents:
		parents = [child for p in parents for child in read_of(p, f"task/{p}/children").decode().split()]
		found += [p for p in parents if b"serve" in read_of(p, "cmdline").split(b"\0")]
	return found


def read_of(pid, what):
	"""A file of a process, which may end at any moment."""
	try:
		return pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
	except OSError:
		return b""


def until(condition, seconds=60):
	"""What the condition says, as soon as that is something, or at the end of the time."""
	deadline = time.monotonic() + seconds
	while not (found := condition()) and time.monotonic() < deadline:
		time.sleep(0.02)
	return found


def run_tests(*tests):
	for test in tests:
		try:
			test()
			print(f"ok {test.__name__}", flush=True)
		except Exception as error:
			print(f"not ok {test.__name__}: {type(error).__name__}: {error}", flush=True)
