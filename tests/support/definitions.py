"""The definitions of this project: those in examples, and those that stand on a page. For tests that explore all of them."""
import json
import pathlib
import re
import subprocess


def on_page(text):
	"""Every definition that stands in a text, however it is fenced: its workflow, its text."""
	decoder = json.JSONDecoder()
	for match in re.finditer(r'\{\s*"workflow":', text):
		try:
			value, end = decoder.raw_decode(text[match.start():])
		except ValueError:
			continue
		if "kind" in value and ("steps" in value or "item_action" in value):
			yield value["workflow"], text[match.start():match.start() + end]


def every(root, folder, hapax, tests=False):
	"""Each that is valid: where it stands, its workflow, its file (those of pages are written into the folder), and its world or None. With
	tests: those of tests/explore, too."""
	pages = [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "examples").glob("*/README.md"))]
	for page in pages:
		for n, (name, text) in enumerate(on_page(page.read_text())):
			path = pathlib.Path(folder) / f"{page.parent.name}-{page.stem}-{n}.json"
			path.write_text(text)
			if subprocess.run([hapax, "check", "--json", path], capture_output=True).returncode == 0:
				yield str(page.relative_to(root)), name, path, None
	for file in sorted([*(root / "examples").glob("**/*.json"), *((root / "tests/explore").glob("**/*.json") if tests else [])]):
		if '"workflow"' not in file.read_text() or file.name.endswith((".world.json", ".test.json", ".schedule.json", ".old.json")):
			continue
		world = file.with_suffix(".world.json")
		yield str(file.relative_to(root)), json.loads(file.read_text())["workflow"], file, world if world.exists() and file.parent.name == "explore" else None
