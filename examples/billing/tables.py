#!/usr/bin/env python3
"""The example's own tables: `tables.py create FILE` makes them, `tables.py show FILE` reads them beside the server."""
import pathlib, sqlite3, sys

verb, file = sys.argv[1:]
db = sqlite3.connect(f"file:{file}?mode={'rwc' if verb == 'create' else 'ro'}", uri=True)
if verb == "create":
    db.executescript(pathlib.Path(__file__).with_name("schema.sql").read_text())
else:
    for number, generation, amount, paid, retired in db.execute("SELECT * FROM invoices ORDER BY 1, 2"):
        print(f"invoice {number} generation {generation}: amount {amount}, paid {paid}{', retired' if retired else ''}")
    for effect, invoice, amount, _ in db.execute("SELECT * FROM payments ORDER BY 4"):
        print(f"payment of {amount} for {invoice}, effect {effect}")
