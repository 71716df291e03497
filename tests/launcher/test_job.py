# SPDX-License-Identifier: BSD-3-Clause
"""What the other files of this folder start jobs with."""

import pathlib
import signal
import subprocess
import sys
import unittest


class Job(unittest.TestCase):
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
