#!/usr/bin/env python3
"""pack-clients.py VERSION FOLDER: the clients as an npm tarball and a wheel, from clients/, into FOLDER. The same files give the same bytes.

Both are archives with a known layout, so neither npm nor pip is needed: `npm install ./hapax-VERSION.tgz` and
`pip install --no-index ./hapax-VERSION-py3-none-any.whl` take them without the network.
"""
import base64
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile

EPOCH = (2026, 1, 1, 0, 0, 0)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def npm(version, folder):
    package = json.loads(read("clients/js/package.json"))
    if package["version"] != version:
        sys.exit("clients/js/package.json has version %s, include/hapax.h %s" % (package["version"], version))
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ["package.json"] + sorted(package["files"]) + ["LICENSE"]:
            text = read("LICENSE" if name == "LICENSE" else "clients/js/" + name)
            entry = tarfile.TarInfo("package/" + name)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text))
    with open("%s/hapax-%s.tgz" % (folder, version), "wb") as file:
        file.write(out.getvalue())


def wheel(version, folder):
    info = "hapax-%s.dist-info" % version
    files = {"hapax/" + name: read("clients/python/hapax/" + name) for name in sorted(os.listdir("clients/python/hapax")) if name.endswith((".py", ".typed"))}
    files[info + "/METADATA"] = ("Metadata-Version: 2.1\nName: hapax\nVersion: %s\nSummary: Functions whose steps happen once, and the client of Hapax\n"
                                 "License: MIT\nRequires-Python: >=3.9\n" % version).encode()
    files[info + "/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: hapax\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[info + "/LICENSE"] = read("LICENSE")
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()  # noqa: E731
    record = "".join("%s,sha256=%s,%d\n" % (name, digest(text), len(text)) for name, text in files.items())
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    with zipfile.ZipFile("%s/hapax-%s-py3-none-any.whl" % (folder, version), "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            out.writestr(entry, text)


version, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
npm(version, folder)
wheel(version, folder)
