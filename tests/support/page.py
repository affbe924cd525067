#!/usr/bin/env python3
"""What a page shows: commands, and the answers to them.

    page.py split PAGE        writes each command as NNN.sh, or NNN.terminal if it runs on, with NNN.text, its answer
    page.py root PAGE         the same for what is root's
    page.py fits TEXT OUT     is OUT what TEXT says?
    page.py list PAGE…        every command, as PAGE:LINE: COMMAND; after those that no walk runs "# not run: " and why
    page.py stray PAGE…       lines that look like commands, and stand in a block of another kind

Commands stand in these blocks, and in no others:

    ```terminal   a program that is to run in a terminal of its own
    ```sh         commands; "sh again" where the answer may take some time to come
    ```text       the answer to the block before (none: nothing is printed)
    ```           a transcript, if its first line begins with "$ " or "# ": each such line is a command, what follows its
                  answer. Servers in it run on, as in a terminal. After "# " is what root does on a machine of its own

In an answer … stands for anything, alone on a line for any number of lines, and any number of blanks is one. Ids, times
and the like are never the same twice and stand for anything, too; so do the words of a comment that readers do not see,
<!-- varies: 55 60 -->, in the block after it. JSON may be broken into lines that begin with a blank.
"""
import re, sys

# What no walk runs, and who does it instead.
MAKE = "test_docs_commands.sh asks make what it would do; make root-test runs both commands of README's quick start"
ROOT = "make package-test runs it, in a fresh Debian with the package"
OF_ROOT = re.compile(r"\b(sudo|su|runuser|systemctl|apt|apt-get|dpkg|chown|useradd)\b|(^|[ =:])/(etc|usr|var|opt|home|root|backup)\b")
LOOKS = re.compile(
    r"(\$|(build/)?hapax|curl|make|apt(-get)?|sudo|systemctl|journalctl|git|docker|python3|node|psql|redis-cli|cc|gcc|kill|export"
    r"|(build|tests|scripts|examples|packaging)/\S+) |make$|\. \S+/env$"
)
SERVER = re.compile(r"(build/)?hapax (serve|gate -)")
ANYTHING = re.compile(
    r"(run|batch|bulk|job|key|ent|op|sched|t)_[0-9a-z]{13}\b"
    r"|hx_[0-9a-z]{13}_[0-9a-z]+"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|\d\d:\d\d:\d\d\.\d{3}|\b\d+ms\b|\b\d+\.\ds\b"
    r"|\b[0-9a-f]{16}\b|\b[0-9a-f]{64}\b"
)


def blocks(page):
    """(line, words after the fence, lines, words that vary) of every block; in lists they may be indented."""
    begun, varies = None, []
    for number, line in enumerate(open(page, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if found := re.match(r"<!-- varies: (.*) -->", line):
            varies = found[1].split()
        elif fence := re.match(r"( *)```(.*)", line):
            if begun is None:
                begun, indent, info, lines = number, len(fence[1]), fence[2].split(), []
            else:
                yield begun, info, lines, varies
                begun, varies = None, varies if info[:1] == ["sh"] else []
        elif begun is not None:
            lines.append(line[indent:])


def plain_answer(lines, varies):
    """With what cannot be known in advance as …, and broken JSON in one line."""
    whole = []
    for line in lines:
        if line.startswith(" ") and whole and re.match(r"[{[]", whole[-1]):
            whole[-1] += line.strip()
        else:
            whole.append(line)
    known = re.compile("|".join(rf"(?<![\w.]){re.escape(word)}(?![\w.])" for word in varies) or r"(?!)")
    return [known.sub("…", ANYTHING.sub("…", line)) for line in whole]


class Command:
    def __init__(self, line, lines, kind="sh", again=False):
        self.line, self.lines, self.kind, self.again, self.answer = line, lines, kind, again, []
        self.not_run = ROOT if kind == "root" else MAKE if lines[0].split()[:1] == ["make"] else None


def is_transcript(info, lines):
    return not info and lines and lines[0].startswith(("$ ", "# "))


def transcript(begun, lines, varies):
    found, answers = [], []
    for number, line in enumerate(lines, begun + 1):
        if line.startswith(("$ ", "# ")):
            kind = "root" if line[0] == "#" else "terminal" if SERVER.match(line[2:]) else "sh"
            found.append(Command(number, [line[2:]], kind))
            answers.append([])
        else:
            answers[-1].append(line)
    for command, answer in zip(found, answers):
        command.answer = plain_answer(answer, varies)
    return found


def commands(page):
    found, last = [], []
    for begun, info, lines, varies in blocks(page):
        kind = info[0] if info else ""
        if kind in ("sh", "terminal"):
            if len({line.startswith("make ") for line in lines}) > 1:
                sys.exit(f"{page}:{begun}: what make does stands in a block of its own")
            last = [Command(begun, lines, kind, "again" in info)]
            found += last
        elif kind == "text" and last:
            last[0].answer = plain_answer(lines, varies)
        elif is_transcript(info, lines):
            found += transcript(begun, lines, varies)
    return found


def write(name, lines):
    with open(name, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def split(page, of_root=False):
    chosen = [c for c in commands(page) if (c.kind == "root" if of_root else not c.not_run)]
    for command in chosen:  # a walk is on somebody's machine
        if not of_root and any(OF_ROOT.search(line) for line in command.lines):
            sys.exit(f"{page}:{command.line}: root's, so it begins with # and not with $: {command.lines[0]}")
    for n, command in enumerate(chosen, 1):
        write(f"{n:03}.{command.kind}", command.lines)
        write(f"{n:03}.text", command.answer)
        if command.again:
            write(f"{n:03}.again", [])


def fits(text, out):
    def one_blank(line):
        return re.sub(r"[ \t\r]+", " ", line).rstrip(" ")

    want = ""
    for line in open(text, encoding="utf-8").read().splitlines():
        want += r"(?:.*\n)*" if line == "…" else ".*".join(re.escape(part) for part in one_blank(line).split("…")) + r"\n"
    got = "".join(one_blank(line) + "\n" for line in open(out, encoding="utf-8", errors="replace").read().splitlines())
    sys.exit(re.fullmatch(want, got) is None)


def show(*pages):
    for page in pages:
        for command in commands(page):
            for line in command.lines:
                print(f"{page}:{command.line}: {line}" + (f"  # not run: {command.not_run}" if command.not_run else ""))


def stray(*pages):
    for page in pages:
        for begun, info, lines, _ in blocks(page):
            runs = info[:1] in (["sh"], ["terminal"]) or is_transcript(info, lines)
            for number, line in enumerate(lines, begun + 1):
                if not runs and info[:1] not in (["json"], ["text"], ["c"]) and LOOKS.match(line):
                    print(f"{page}:{number}: a command that nobody runs: {line}")


def root(page):
    split(page, of_root=True)


{"split": split, "root": root, "fits": fits, "list": show, "stray": stray}[sys.argv[1]](*sys.argv[2:])
