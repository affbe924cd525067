#!/usr/bin/env python3
"""slots.py FILE: what src/model/cron.c found, against zoneinfo of Python.

FILE has, for each zone and expression, a line "ZONE<tab>CRON<tab>FROM<tab>TO" (moments of UTC, TO not included), and after it the
moments that were found between them, one a line. Says how many there were, or the first that is different, and then fails.
"""
import calendar
import functools
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MONTHS = {name.upper(): i for i, name in enumerate(calendar.month_abbr) if name}
DAYS = {name: i for i, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}


def number(text, names):
    return names[text.upper()] if text.upper() in names else int(text)


def plain(field, low, high, names):
    """The numbers of a field without L and #."""
    found = set()
    for part in field.split(","):
        part, _, step = part.partition("/")
        if part == "*":
            begin, end = low, high
        else:
            begin, _, end = part.partition("-")
            begin = number(begin, names)
            end = number(end, names) if end else high if step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def days_of_month(field, year, month):
    last = calendar.monthrange(year, month)[1]
    parts = field.split(",")
    found = {last} if "L" in parts else set()
    rest = ",".join(p for p in parts if p != "L")
    return found | (plain(rest, 1, 31, {}) if rest else set())


def days_of_week(field, year, month):
    """Days of this month."""
    by_weekday = {d: [day for day in range(1, calendar.monthrange(year, month)[1] + 1)
                      if (calendar.weekday(year, month, day) + 1) % 7 == d] for d in range(7)}
    found = set()
    for part in field.split(","):
        if "#" in part:
            day, n = part.split("#")
            found.update(by_weekday[number(day, DAYS) % 7][int(n) - 1:int(n)])
        elif part.upper().endswith("L"):
            found.add(by_weekday[number(part[:-1], DAYS) % 7][-1])
        else:
            for day in plain(part, 0, 7 if part[0] != "*" else 6, DAYS):
                found.update(by_weekday[day % 7])
    return found


@functools.cache
def local_times(cron, first, last):
    return list(find_local_times(cron, first, last))


def find_local_times(cron, first, last):
    minute, hour, of_month, month, of_week = cron.split()
    minutes, hours = sorted(plain(minute, 0, 59, {})), sorted(plain(hour, 0, 23, {}))
    months = plain(month, 1, 12, MONTHS)
    both = of_month[0] == "*" or of_week[0] == "*"
    day = first
    while day <= last:
        if day.month in months:
            a = day.day in days_of_month(of_month, day.year, day.month)
            b = day.day in days_of_week(of_week, day.year, day.month)
            if (a and b) if both else (a or b):
                for h in hours:
                    for m in minutes:
                        yield datetime(day.year, day.month, day.day, h, m)
        day += timedelta(days=1)


def moment(local, zone):
    """The first moment of a local time; in a gap, its end."""
    first = local.replace(tzinfo=zone)
    if local.replace(tzinfo=zone, fold=1).utcoffset() == first.utcoffset():
        return int(first.timestamp())
    at = int(first.timestamp())
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == local:
        return at
    low, high = int(local.replace(tzinfo=zone, fold=1).timestamp()), at
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def expected(name, cron, begin, end):
    zone = ZoneInfo(name)
    first = datetime.fromtimestamp(begin, timezone.utc).replace(tzinfo=None) - timedelta(days=2)
    last = datetime.fromtimestamp(end, timezone.utc).replace(tzinfo=None) + timedelta(days=2)
    found = {moment(local, zone) for local in local_times(cron, first, last)}
    return sorted(m for m in found if begin <= m < end)


def main():
    blocks, total = [], 0
    with open(sys.argv[1], encoding="ascii") as text:
        for line in text:
            if "\t" in line:
                name, cron, begin, end = line.rstrip("\n").split("\t")
                blocks.append((name, cron, int(begin), int(end), []))
            else:
                blocks[-1][4].append(int(line))
    for name, cron, begin, end, found in blocks:
        wanted = expected(name, cron, begin, end)
        total += len(wanted)
        if wanted != found:
            odd = sorted(set(wanted) ^ set(found))[:1] or ["order"]
            sys.exit(f"{name} \"{cron}\": {len(found)} found, {len(wanted)} by zoneinfo; the first that differs: "
                     f"{odd[0]} ({'missing' if odd[0] in wanted else 'too many'})")
    print(f"# {total} slots of {len(blocks)} zones and expressions are those of zoneinfo")


main()
