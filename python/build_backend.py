"""Builds the package for pip without any other tool, so that an installation needs no network.

A build backend of PEP 517; the wheel is laid out as the specification of binary distributions says.
"""

import base64
import hashlib
import io
import os
import tarfile
import zipfile

NAME, VERSION = "pawl", "0.1.0"
RELEASE = f"{NAME}-{VERSION}"
FILES = ("pawl/__init__.py", "pawl/_library.py", "pawl/_mapping.py", "pawl/py.typed")
SOURCES = (*FILES, "README.md", "build_backend.py", "pyproject.toml")
# The same in each wheel, so that two of the same sources are the same bytes.
TIME = (2000, 1, 1, 0, 0, 0)


def read(name):
    with open(name, "rb") as file:
        return file.read()


def metadata():
    header = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Failure-atomic msync: a mapped file that moves from one consistent state to the next
License: BSD-3-Clause
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""
    return header.encode() + read("README.md")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    information = f"{RELEASE}.dist-info"
    contents = {name: read(name) for name in FILES}
    contents[f"{information}/METADATA"] = metadata()
    contents[f"{information}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: {RELEASE}\n"
                                        "Root-Is-Purelib: true\nTag: py3-none-any\n").encode()
    record = f"{information}/RECORD"
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    contents[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{RELEASE}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    sources = f"{RELEASE}.tar.gz"
    contents = {name: read(name) for name in SOURCES}
    contents["PKG-INFO"] = metadata()
    with tarfile.open(os.path.join(sdist_directory, sources), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{RELEASE}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return sources
