#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The behaviour of ibcoll_run: `test_launcher.py --bin BUILD/bin [--part K/N] [TESTS...] [-v]`. Needs ibcoll_launcher_probe."""

import argparse
import pathlib
import sys
import unittest

import job

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin", help="folder of ibcoll_run")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="of N parts that run side by side, as most tests wait")
    options, rest = parser.parse_known_args()
    job.BIN = pathlib.Path(options.bin).resolve()
    for name in ("ibcoll_run", "ibcoll_launcher_probe"):
        if not (job.BIN / name).exists():
            sys.exit(f"{job.BIN / name} is not built")
    # pylint: disable=unused-import,wrong-import-position
    from test_ends import ExitCodes, Limits, NobodyLeft, Signals, TimeLimit
    from test_hosts import Environment, HostFiles, RemoteHosts, SecureShell
    from test_output import BrokenOutput, Input, Lines, Volume
    from test_rendezvous import Exchanges, Secret, Strangers
    from test_silence import Silence
    part, parts = map(int, options.part.split("/"))
    if not 1 <= part <= parts or (parts > 1 and any(not word.startswith("-") for word in rest)):
        parser.error("--part is K/N with K from 1 to N, and without names of tests")
    classes = sorted(name for name, value in globals().items() if isinstance(value, type) and issubclass(value, unittest.TestCase))
    unittest.main(argv=[sys.argv[0], *(classes[part - 1::parts] if parts > 1 else []), *rest])
