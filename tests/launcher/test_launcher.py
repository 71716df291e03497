#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The behaviour of ibcoll_run: `test_launcher.py --bin BUILD/bin [--part K/N] [TESTS...] [-v]`. Needs ibcoll_launcher_probe."""

import argparse
import pathlib
import signal
import subprocess
import sys
import unittest

import job


def part_of(text):
    """K/N as (K, N)."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"'{text}' is not K/N with K from 1 to N")
    return int(part), int(parts)


class Parts(unittest.TestCase):
    def test_under_nohup(self):
        def ignore():
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

        program = ("import job, subprocess\nfor name in ('HUP', 'INT', 'QUIT', 'TERM'):\n"
                   "  print(name, subprocess.call(['sh', '-c', f'kill -{name} $$; exit 0']))")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False,
                              cwd=pathlib.Path(__file__).parent, preexec_fn=ignore)
        self.assertEqual(done.stdout, "HUP -1\nINT -2\nQUIT -3\nTERM -15\n", done.stderr)

    def test_mistakes(self):
        for text in ("x", "1", "/", "0/2", "3/2", "1/2/3"):
            done = subprocess.run([sys.executable, __file__, "--part", text], capture_output=True, text=True, timeout=30,
                                  check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: argument --part: '{text}' is not K/N", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin", help="folder of ibcoll_run")
    parser.add_argument("--part", type=part_of, default="1/1", metavar="K/N", help="of N parts that run side by side, as most tests wait")
    options, rest = parser.parse_known_args()
    part, parts = options.part
    if parts > 1 and any(not word.startswith("-") for word in rest):
        parser.error("argument --part: not together with names of tests")
    job.BIN = pathlib.Path(options.bin).resolve()
    for name in ("ibcoll_run", "ibcoll_launcher_probe"):
        if not (job.BIN / name).exists():
            sys.exit(f"{job.BIN / name} is not built")
    # pylint: disable=unused-import,wrong-import-position
    from test_ends import ExitCodes, Limits, NobodyLeft, Signals, TimeLimit
    from test_hosts import Environment, HostFiles, NameServers, RemoteHosts, SecureShell
    from test_output import BrokenOutput, Input, Lines, Terminal, Volume
    from test_rendezvous import Exchanges, Secret, Strangers
    from test_silence import Silence
    from test_typed import Bindings, OtherHosts, Terminals, Typed
    classes = [value for value in globals().values() if isinstance(value, type) and issubclass(value, unittest.TestCase)]
    names = sorted(f"{value.__name__}.{test}" for value in classes for test in unittest.defaultTestLoader.getTestCaseNames(value))
    unittest.main(argv=[sys.argv[0], *(names[part - 1::parts] if parts > 1 else []), *rest])
