"""page.py : one page of plots, for people who would rather look than read. race.py and bench.py use it.

A Page is filled from top to bottom (tiles, bars, lines, bullets, tables, words) and written as one HTML file: no scripts,
nothing fetched, plots as inline SVG. Colours are CSS variables, so that it follows the reader's light or dark theme;
whatever a colour says, a label or a mark says too. Numbers come in as they are; what is drawn is up to the caller, and
race.py and bench.py draw ratios only.
"""

import html
import math
import statistics

STYLE = """
:root { color-scheme: light dark; --page: #fbfaf7; --card: #ffffff; --ink: #1d1f21; --soft: #5f6368; --line: #dcdad3;
  --ours: #0b63c5; --ours-soft: #6fa8e8; --good: #1a7f4b; --bad: #b3261e;
  --s0: #0b63c5; --s1: #d1650a; --s2: #7b4fb5; --s3: #17806d; --s4: #b0356f; --s5: #857008; --s6: #4c8fe0; --s7: #747a80; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --card: #1c1f25; --ink: #e9e8e4; --soft: #a5a9b0; --line: #353a43;
  --ours: #6db0ff; --ours-soft: #3a679c; --good: #5fcf95; --bad: #ff8a80;
  --s0: #6db0ff; --s1: #ff9f4a; --s2: #c09cf5; --s3: #4fd0b6; --s4: #f58abb; --s5: #d9c04a; --s6: #3f7fc9; --s7: #9aa1a9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 32px 20px 64px; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { font-size: 32px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 0 0 2px; }
p { margin: 0 0 12px; } .soft { color: var(--soft); } .small { font-size: 13.5px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(225px, 1fr)); gap: 14px; margin: 22px 0; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; }
.tile b { display: block; font-size: 38px; line-height: 1.1; color: var(--ours); letter-spacing: -0.02em; }
.tile span { display: block; } .tile small { color: var(--soft); } .tile.none b { color: var(--soft); } .tile.less b { color: var(--bad); }
section { margin: 16px 0; padding: 20px 22px; } svg { display: block; width: 100%; height: auto; margin-top: 10px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 16px; } .pair section { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; } .wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
summary { cursor: pointer; font-weight: 600; } .bad { color: var(--bad); } .good { color: var(--good); }
svg text { fill: var(--ink); font: 13px system-ui, "Liberation Sans", sans-serif; } svg .soft { fill: var(--soft); }
svg .head { font-weight: 600; } svg .strong { font-weight: 700; } svg .end { text-anchor: end; } svg .mid { text-anchor: middle; }
"""


def median(numbers):
    return statistics.median(numbers)


def times(ratio):
    """A ratio as people say it: 24 ×, 3.1 ×, 0.42 ×."""
    digits = 0 if ratio >= 9.95 else 1 if ratio >= 0.995 else 2
    return f"{ratio:,.{digits}f} ×"


def plain(number):
    """As many digits as say something: 22,250, 9.84, 0.541."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def escape(text):
    return html.escape(str(text), quote=True)


def bar_rows(rows):
    """Rows of dicts: label, value, low, high, text, ours; a row without a value is a heading. Values share one scale."""
    width, left, room = 1000, 372, 470
    top = max([row.get("high", row["value"]) for row in rows if "value" in row] or [1]) or 1
    out, y = [], 4
    for row in rows:
        if "value" not in row:
            out.append(f'<text class="head" x="0" y="{y + 20}">{escape(row["label"])}</text>')
            y += 30
            continue
        length = max(2.0, row["value"] / top * room)
        strong = "strong" if row.get("ours") else ""
        out.append(f'<text class="end {strong}" x="{left - 12}" y="{y + 17}">{escape(row["label"])}</text>')
        colour = "var(--ours)" if row.get("ours") else "var(--s7)"
        out.append(f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="20" rx="3" style="fill:{colour}"/>')
        end = length
        if "low" in row and row["high"] > row["low"]:
            a, b = (left + row[k] / top * room for k in ("low", "high"))
            out.append(f'<path d="M{a:.1f} {y + 12}H{b:.1f}M{a:.1f} {y + 8}v8M{b:.1f} {y + 8}v8" '
                       'style="stroke:var(--ink);stroke-width:1.5;fill:none"/>')
            end = max(end, b - left)
        out.append(f'<text class="{strong}" x="{left + end + 10:.1f}" y="{y + 17}">{escape(row["text"])}</text>')
        y += 28
    return svg(width, y + 4, out)


def svg(width, height, parts):
    return f'<svg viewBox="0 0 {width} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'


def mark(shape, x, y, colour):
    r = 5
    if shape % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" style="fill:{colour}"/>'
    if shape % 3 == 1:
        return f'<rect x="{x - r:.1f}" y="{y - r:.1f}" width="{2 * r}" height="{2 * r}" style="fill:{colour}"/>'
    return f'<path d="M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r + 1}h-{2 * r + 2}z" style="fill:{colour}"/>'


def spread(wanted, apart, highest):
    """Places for labels: near where they are wanted, in the same order, none on another."""
    placed = {}
    at = -1e9
    for name in sorted(wanted, key=wanted.get):
        at = placed[name] = max(wanted[name], at + apart)
    over = at - highest
    for name in sorted(placed, key=placed.get, reverse=True):
        if over <= 0:
            break
        placed[name] -= over
        below = [placed[n] for n in placed if wanted[n] < wanted[name]]
        over = max(below, default=-1e9) + apart - placed[name]
    return placed


def ticks_of(low, high):
    """1, 10, 100 … over the range; 1, 2, 5, 10 … where that would be too few."""
    for steps in ((1,), (1, 3), (1, 2, 5)):
        ticks = [s * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for s in steps]
        ticks = [t for t in ticks if low * 0.999 <= t <= high * 1.001]
        if len(ticks) >= 3:
            break
    return ticks


def line_plot(xs, series, x_words, y_words, tick=times):
    """Both axes logarithmic, so that a distance is a ratio. Series are dicts: label, values (None: not there), ours, text."""
    width, height, left, right, top, bottom = 1000, 420, 90, 320, 30, 52
    values = [v for s in series for v in s["values"] if v]
    if not values:
        return ""
    low, high = min(values) / 1.25, max(values) * 1.25
    x_of = [left + (width - left - right) * i / max(1, len(xs) - 1) for i in range(len(xs))]

    def y_of(value):
        return top + (height - top - bottom) * (1 - math.log(value / low) / math.log(high / low))

    out = [f'<text class="soft" x="0" y="14">{escape(y_words)}</text>']
    for t in ticks_of(low, high):
        out.append(f'<path d="M{left} {y_of(t):.1f}H{width - right}" style="stroke:var(--line)"/>'
                   f'<text class="soft end" x="{left - 10}" y="{y_of(t) + 4:.1f}">{tick(t)}</text>')
    for x, name in zip(x_of, xs):
        out.append(f'<text class="soft mid" x="{x:.1f}" y="{height - 26}">{name:,}</text>')
    out.append(f'<text class="soft mid" x="{(left + width - right) / 2}" y="{height - 6}">{escape(x_words)}</text>')
    ends = {}
    for n, s in enumerate(series):
        colour = f"var(--s{n % 8})"
        points = [(x, y_of(v)) for x, v in zip(x_of, s["values"]) if v]
        if not points:
            continue
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        look = "stroke-width:3.5" if s.get("ours") else "stroke-width:2;stroke-dasharray:6 4"
        out.append(f'<path d="M{path}" style="fill:none;stroke:{colour};{look}"/>')
        out += [mark(n, x, y, colour) for x, y in points]
        ends[n] = points[-1][1]
    for n, y in spread(ends, 19, height - bottom).items():
        s, x = series[n], width - right + 16
        out.append(f'<path d="M{x_of[-1] + 8:.1f} {ends[n]:.1f}L{x} {y:.1f}" style="stroke:var(--line)"/>')
        out.append(mark(n, x + 8, y, f"var(--s{n % 8})"))
        out.append(f'<text class="{"strong" if s.get("ours") else ""}" x="{x + 20}" y="{y + 4:.1f}">{escape(s["label"])}'
                   f'<tspan class="soft"> {escape(s.get("text", ""))}</tspan></text>')
    return svg(width, height, out)


def bullet_plot(rows):
    """Each number beside its bar: 1 is the bar itself, beyond it is good. Rows are dicts: label, value, sense, bar, text."""
    width, left, room, most = 1000, 500, 300, 2.5
    out, y = [], 22
    one = left + room / most
    out.append(f'<text class="soft mid" x="{one:.0f}" y="12">the bar</text>')
    for row in rows:
        share = row["value"] / row["bar"] if row["sense"] == "least" else row["bar"] / max(row["value"], 1e-9)
        good = share >= 1
        length = min(share, most) / most * room
        out.append(f'<text class="end" x="{left - 12}" y="{y + 16}">{escape(row["label"])}</text>')
        out.append(f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="16" rx="3" '
                   f'style="fill:var(--{"good" if good else "bad"})"/>')
        if share > most:
            out.append(f'<path d="M{left + length - 12:.0f} {y + 1}l5 20m3 -20l5 20" style="stroke:var(--card);stroke-width:2"/>')
        out.append(f'<text class="{"" if good else "strong"}" x="{left + room + 14}" y="{y + 16}">{"✓" if good else "✗"} '
                   f'{escape(row["text"])}</text>')
        y += 26
    out.append(f'<path d="M{one:.1f} 18V{y}" style="stroke:var(--ink);stroke-dasharray:3 3"/>')
    return svg(width, y + 6, out)


class Page:
    def __init__(self, title, lead):
        self.title = title
        self.parts = [f"<h1>{escape(title)}</h1>", f'<p class="soft">{escape(lead)}</p>']

    def tiles(self, tiles, red_below=0.0):
        """Tiles are (ratio or None, words, small words)."""
        self.parts.append('<div class="tiles">')
        for ratio, words, small in tiles:
            big, kind = (times(ratio), "tile less" if ratio < red_below else "tile") if ratio else ("–", "tile none")
            self.parts.append(f'<div class="{kind}"><b>{escape(big)}</b><span>{escape(words)}</span><small>{escape(small)}</small></div>')
        self.parts.append("</div>")

    def plot(self, title, words, drawing):
        if drawing:
            self.parts.append(f'<section><h2>{escape(title)}</h2><p class="soft small">{escape(words)}</p>{drawing}</section>')

    def table(self, title, heads, rows, numbers_from=99, folded=False):
        def cells(tag, row):
            return "".join(f'<{tag}{" class=n" if n >= numbers_from else ""}>{escape(c)}</{tag}>' for n, c in enumerate(row))

        body = "".join(f'<tr>{cells("td", row)}</tr>' for row in rows)
        table = f'<div class="wide"><table><thead><tr>{cells("th", heads)}</tr></thead><tbody>{body}</tbody></table></div>'
        if folded:
            self.parts.append(f"<section><details><summary>{escape(title)}</summary>{table}</details></section>")
        else:
            self.parts.append(f"<section><h2>{escape(title)}</h2>{table}</section>")

    def words(self, text, kind="soft small"):
        self.parts.append(f'<p class="{kind}">{escape(text)}</p>')

    def html(self):
        return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                '<meta name="viewport" content="width=device-width, initial-scale=1">'
                f'<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n<body>\n' + "\n".join(self.parts) + "\n</body></html>\n")
