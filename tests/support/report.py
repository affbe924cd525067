"""report.py : reads a page of bench/page.py as strictly as it should be written: every element closed in its order, nothing
that runs or is fetched, every number of a drawing inside of it. `read` raises AssertionError, or tells what is on the page.
"""

import html.parser
import re

VOID = {"meta", "circle", "rect", "path", "br", "line"}


class Report(html.parser.HTMLParser):
	def __init__(self):
		super().__init__(convert_charrefs=True)
		self.open, self.box = [], None
		self.drawings, self.marks, self.tiles, self.texts, self.headings, self.words = 0, 0, [], [], [], ""

	def handle_starttag(self, tag, attrs):
		attrs = dict(attrs)
		assert tag not in ("script", "link", "iframe", "img", "object"), f"<{tag}> on the page"
		assert not {"src", "href", "onload", "onclick"} & set(attrs), f"<{tag}> fetches or runs something"
		assert all(v is not None for v in attrs.values()), f"<{tag}>: an attribute without a value"
		if tag == "svg":
			self.drawings += 1
			self.box = [float(n) for n in attrs["viewbox"].split()]
		elif self.box:
			self.check_inside(tag, attrs)
		if tag not in VOID:
			self.open.append(tag)

	handle_startendtag = handle_starttag

	def check_inside(self, tag, attrs):
		for name in ("x", "y", "cx", "cy", "width", "height", "r", "d"):
			assert "nan" not in attrs.get(name, "").lower() and "inf" not in attrs.get(name, "").lower(), f"<{tag} {name}>"
		x, y = (float(attrs.get(a, attrs.get("c" + a, 0))) for a in ("x", "y"))
		right, bottom = x + float(attrs.get("width", 0)), y + float(attrs.get("height", 0))
		assert 0 <= x <= right <= self.box[2] and 0 <= y <= bottom <= self.box[3], f"<{tag}> is outside: {attrs}"
		self.marks += tag in ("circle", "rect", "path")

	def handle_endtag(self, tag):
		assert self.open and self.open[-1] == tag, f"</{tag}> where {self.open[-3:]} is open"
		self.open.pop()
		if tag == "svg":
			self.box = None

	def handle_data(self, data):
		if "style" in self.open:
			assert "@import" not in data and "url(" not in data, "the style fetches something"
			return
		self.words += data
		if self.open[-1:] == ["b"]:
			self.tiles.append(data)
		if self.open[-1:] == ["h2"]:
			self.headings.append(data)
		if "svg" in self.open:
			self.texts.append(data)


def read(text):
	assert text.startswith("<!DOCTYPE html>") and text.isprintable() is False
	bare = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
	assert not re.search(r"https?:|//[a-z]", bare), "an address on the page"
	report = Report()
	report.feed(text)
	report.close()
	assert not report.open, f"not closed: {report.open}"
	assert report.drawings and report.marks, "nothing is drawn"
	return report
