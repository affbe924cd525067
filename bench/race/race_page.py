"""race_page.py : the page of a race, out of its raw numbers alone. What it says are ratios of that one run; what they are
taken from is in a table at the end and in raw.json.
"""

import machine
import page

REFERENCE = "restate"
UNDER_WAY = (1, 16, 64, 256)


def is_ours(who):
    return who.startswith(("hapax", "gate"))


class Numbers:
    """Medians over the repetitions; None where something was not measured."""

    def __init__(self, raw):
        self.measured, self.labels = raw["measured"], raw["labels"]

    def get(self, what, who):
        numbers = self.measured.get(what, {}).get(who)
        return page.median(numbers) if numbers else None

    def ratio(self, what, who, other, other_what=None):
        a, b = self.get(what, who), self.get(other_what or what, other)
        return a / b if a and b else None

    def reference(self, what, first=REFERENCE):
        """Whom the others are compared with: that one, or if it is not there the slowest peer, or the slowest."""
        found = self.measured.get(what, {})
        if first in found:
            return first
        peers = [w for w in found if not is_ours(w)] or list(found)
        return min(peers, key=lambda w: self.get(what, w), default=None)

    def best(self, what, among, least=False):
        """Of those who were measured the one with the largest number, or the least."""
        found = [w for w in self.measured.get(what, {}) if among(w)]
        return (min if least else max)(found, key=lambda w: self.get(what, w), default=None)

    def bars(self, what, reference, less_is_better=False):
        """Everybody who was measured, the best first, each over the reference."""
        base = self.get(what, reference)
        if not base:
            return ""
        rows = []
        for who in sorted(self.measured[what], key=lambda w: self.get(what, w), reverse=not less_is_better):
            ratios = [n / base for n in self.measured[what][who]]
            middle = page.median(ratios)
            words = "1 (compared with)" if who == reference else page.times(middle)
            rows.append({"label": self.labels[who], "value": middle, "low": min(ratios), "high": max(ratios), "ours": is_ours(who), "text": words})
        return page.bar_rows(rows)


def tiles(numbers):
    def against(what, who, other, words):
        label = numbers.labels.get(other, other or "").split(",")[0].split(" (")[0]
        return (numbers.ratio(what, who, other) if who and other else None, f"{words} {label or 'a peer'}")

    peers = lambda w: not is_ours(w) and w not in ("bare", "node-bare")  # noqa: E731
    queue = numbers.best("jobs", peers)
    reference = numbers.reference("runs.256")
    small = numbers.best("idle.mib", peers, least=True)
    rows = [
        (*against("runs.256", "hapax-sqlite-native", reference, "the runs of"), "native steps on SQLite, 256 under way"),
        (*against("runs.256", "hapax-sqlite-node", reference, "the runs of"), "the same steps in a Node service, 256 under way"),
        (*against("runs.256", "hapax-sqlite-function", reference, "the functions of"), "three steps of code in one Node worker, 256 under way"),
        (*against("replay", "hapax-sqlite-node", numbers.reference("replay"), "the replays of"), "the same key again, 64 connections"),
        (*against("jobs", "hapax-sqlite-c-workers", queue, "the jobs of"), "the fastest queue among the peers, workers over HTTP"),
        (*against("gate.created", "gate-sqlite", "middleware", "the requests of"), "a new key at the gate, against a middleware"),
        (*against("gate.replayed", "gate-sqlite", "middleware", "the replays of"), "a key at the gate again, against a middleware"),
        (numbers.ratio("start.ms", "restate-server", "hapax-sqlite"), "as long to start: Restate", "its server until it is ready, against ours"),
        (numbers.ratio("idle.mib", small, "hapax-sqlite"), f"as much memory: {numbers.labels.get(small, 'a peer').split(',')[0]}",
         "the smallest of the peers, idle, against ours"),
    ]
    return rows


def goals(raw, numbers):
    """What was asked for when this was built, as far as it can be seen here."""
    commit_ms = 1000 / max(1, raw["machine"]["disk_syncs_per_second"])
    latency = numbers.get("latency.1", "hapax-sqlite-native")
    rows = [
        ("native steps on SQLite, times Restate", numbers.ratio("runs.256", "hapax-sqlite-native", REFERENCE), "least", 20),
        ("native steps on PostgreSQL, two nodes, times Restate", numbers.ratio("runs.256", "hapax-postgres-two", REFERENCE), "least", 10),
        ("steps in the same Node service, times Restate", numbers.ratio("runs.256", "hapax-sqlite-node", REFERENCE), "least", 6),
        ("functions in one Node worker, times Restate", numbers.ratio("runs.256", "hapax-sqlite-function", REFERENCE), "least", 4),
        ("a function alone, in times of Restate's", numbers.ratio("latency.1", "hapax-sqlite-function", REFERENCE), "most", 1),
        ("steps in a C service, of native ones", numbers.ratio("runs.256", "hapax-sqlite-c", "hapax-sqlite-native"), "least", 0.6),
        ("a run alone on SQLite, in commits of the disk", latency / commit_ms if latency else None, "most", 5),
        ("ready after, ms", numbers.get("start.ms", "hapax-sqlite"), "most", 50),
        ("idle memory, MiB", numbers.get("idle.mib", "hapax-sqlite"), "most", 20),
    ]
    return [{"label": label, "value": value, "sense": sense, "bar": bar, "text": f"{page.plain(value)} ({'at least' if sense == 'least' else 'at most'} {bar})"}
            for label, value, sense, bar in rows if value]


def runs_plot(numbers):
    reference = numbers.reference("runs.1")
    unit = numbers.get("runs.1", reference) if reference else None
    if not unit:
        return ""
    others = {n: numbers.get(f"runs.{n}", reference) for n in UNDER_WAY}
    series = []
    for who in numbers.measured["runs.1"]:
        values = [numbers.get(f"runs.{n}", who) for n in UNDER_WAY]
        last = values[-1] / others[256] if values[-1] and others[256] else None
        series.append({"label": numbers.labels[who].replace("PostgreSQL", "PG").replace(", steps in", "; in").replace(" steps", "").replace(" service", ""),
                       "values": [v / unit if v else None for v in values], "ours": is_ours(who), "text": page.times(last) if last else ""})
    return page.line_plot(UNDER_WAY, series, "runs under way", f"runs per second, against {numbers.labels[reference]} with one under way")


def make_page(raw):
    numbers = Numbers(raw)
    out = page.Page("Hapax in the race", machine.lead(raw["machine"], raw["seconds"]))
    for warning in machine.warnings(raw["machine"]):
        out.words(warning, "bad")
    if raw["size"] < 1:
        out.words(f"A small race, {raw['size']:g} of the usual size: it tries the scripts out, its numbers say little.", "bad")
    out.tiles(tiles(numbers), red_below=1)
    rows = goals(raw, numbers)
    out.plot("What was asked of it", "Each number as a share of its bar. Green has reached it, red has not.", page.bullet_plot(rows) if rows else "")
    out.plot("Runs of three steps", "Started over HTTP with a key, and awaited. Both axes are logarithmic: the same distance is the same ratio. "
             "Solid lines are ours. The number after a name: against the same peer, all with 256 under way.", runs_plot(numbers))
    for what, title, words in (
            ("latency.1", "One run alone", "How long a run takes when nothing else is under way: shorter is better."),
            ("replay", "The same key again", "What a repeated request costs: replays per second, 64 connections."),
            ("jobs", "Jobs drained", "A full queue, worked off by workers that do nothing: jobs per second."),
            ("gate.created", "A key before a plain service: new keys", "Requests per second, 64 connections. The bare service has no keys at all."),
            ("gate.replayed", "A key before a plain service: keys used before", "Replays per second, 64 connections."),
            ("start.ms", "Cold start", "From the start of the process, on a store that is there, until it is ready: shorter is better. Databases run already."),
            ("idle.mib", "Idle memory", "Of the process itself, idle: shorter is better. Databases are not counted; those whose library is in a Node process "
             "have the service in it, too.")):
        first = {"gate.created": "middleware", "gate.replayed": "middleware", "start.ms": "restate-server", "idle.mib": "restate-server",
                 "jobs": "restate-jobs"}.get(what, REFERENCE)
        less = what in ("latency.1", "start.ms", "idle.mib")
        if reference := numbers.reference(what, first):
            out.plot(title, f"{words} {numbers.labels[reference]} is 1. Thin lines: the least and the most of the repetitions.",
                     numbers.bars(what, reference, less))
    said = [(numbers.labels.get(f["who"], f["who"]), f["what"], f["why"]) for f in raw["failed"]]
    if said:
        out.table("Who failed or is missing, and why", ("who", "what", "why"), said)
    out.table("How each was set up", ("who", "settings"), raw["settings"].items())
    out.table("Versions", ("what", "version"), sorted((k, v) for k, v in raw["machine"]["versions"].items() if v))
    out.table("The raw numbers of this machine", ("what", "who", "median", "repetitions"),
              [(what, numbers.labels.get(who, who), f"{page.median(n):,.5g}", " · ".join(f"{x:,.5g}" for x in n))
               for what, all_of in raw["measured"].items() for who, n in all_of.items()], 2, folded=True)
    about = raw["machine"]
    out.words(f"Linux {about['kernel']}, {about['memory_gib']} GiB, {about['cores']} cores; {about['disk_syncs_per_second']:,} fdatasync of 4 KiB a second. "
              f"Median of {raw['rounds']}; everybody durable, on the same disk, one after the other. Ratios are of this run on this machine, and of this work.")
    return out.html()
