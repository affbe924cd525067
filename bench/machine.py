"""machine.py : what the pages say about where and on what they were measured, and how a command of several minutes behaves.
bench.py and race.py use it.
"""

import datetime
import os
import platform
import re
import signal
import subprocess
import time


def command_line(*command):
    """The first line that a program prints, or nothing if it is not there."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return text.splitlines()[0].strip() if text else ""


def number_of(words):
    """The version in what a program says of itself."""
    found = re.search(r"\d+(\.\d+)+", words)
    return found.group() if found else ""


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def describe(build, folder):
    """Cores, memory, versions, and how often the disk of that folder syncs."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory_kib = int(file.readline().split()[1])
    syncs = command_line(f"{build}/bench/disk_sync", f"{folder}/sync", os.environ.get("DISK_SECONDS", "3"))
    if os.path.exists(f"{folder}/sync"):
        os.unlink(f"{folder}/sync")
    return {
        "when": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory_gib": round(memory_kib / 1048576, 1),
        "kernel": platform.release(),
        "disk_syncs_per_second": int(float(syncs or 0)),
        "load_at_start": round(os.getloadavg()[0], 2),
        "versions": {
            "hapax": number_of(command_line(f"{build}/hapax", "--version")),
            "postgresql": number_of(command_line("psql", "--version")),
            "redis": number_of(command_line("redis-server", "--version")),
        },
    }


def lead(machine, seconds):
    """The line under the title."""
    return (f"{machine['when']} · {machine['cores']} cores, {machine['processor']} · the disk syncs "
            f"{machine['disk_syncs_per_second']:,} times a second · load before it {machine['load_at_start']} · took {spell(seconds)}")


def warnings(machine):
    """What makes the numbers worth less."""
    if machine["load_at_start"] > machine["cores"] / 4:
        yield f"The machine was not idle: its load was {machine['load_at_start']} before anything was measured."


def spell(seconds):
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def end_on_signals():
    """SIGTERM is told as Ctrl-C is, and once: nothing disturbs the stopping of what was started."""

    def stop(_number, _frame):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


class Watch:
    def __init__(self):
        self.begin = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.begin
