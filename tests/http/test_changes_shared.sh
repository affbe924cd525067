#!/usr/bin/env bash
# The stream of changes is shared out: a workspace that opens as many as it can leaves room for the pages of others.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import re, resource
import server
from server import Server

MAX = int(re.search(r"#define CHANGES_STREAMS_MAX (\d+)", (server.ROOT / "src/api/api_changes.h").read_text())[1])


def open_page(hapax, workspace):
	page = hapax.open()
	page.sendall(f"GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\nHapax-Workspace: {workspace}\r\n\r\n".encode())
	return page, int(page.recv(12).split()[1])


def test_one_workspace_leaves_room_for_others(dir):
	_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
	resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * MAX) if most > 0 else 4 * MAX, most))
	with Server(dir, "serve") as hapax:
		pages = [open_page(hapax, "greedy") for _ in range(MAX // 2)]
		assert {status for _, status in pages} == {200}
		assert open_page(hapax, "greedy")[1] == 503, "half of all is what one has"
		assert open_page(hapax, "modest")[1] == 200


server.run(globals())
END
