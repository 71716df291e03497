# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the C++ sources, as ibcoll_tables.cc prints them when a tree is built. They are read when they are asked for,
so that what needs none of them needs no build."""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
# What has these tables, or rows of them.
SOURCES = ("runtime/base/catalog.h", "runtime/base/network_modules.h", "runtime/base/settings.cc",
           "runtime/collectives/*/*.cc", "tools/tables/*.cc")


def read(build=BUILD):
    """All tables of a build tree. A missing file, or one that is older than the sources, ends the program with a text."""
    path = build / "tables.json"
    if not path.exists():
        sys.exit(f"{path} does not exist; build first: ninja -C {build}")
    for source in (file for pattern in SOURCES for file in ROOT.glob(pattern)):
        if source.stat().st_mtime > path.stat().st_mtime:
            sys.exit(f"{path} is older than {source}; build first: ninja -C {build}")
    return json.loads(path.read_text(encoding="utf-8"))


def collectives(build=BUILD):
    """Their names, in the order of the catalog."""
    return [row["name"] for row in read(build)["collectives"]]


def settings():
    """{name: row} of all settings."""
    return {row["name"]: row for row in read()["settings"]}
