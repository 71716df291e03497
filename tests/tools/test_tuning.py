# SPDX-License-Identifier: BSD-3-Clause
"""What one job learns, the next one knows: IBCOLL_TUNING and IBCOLL_LEARN as users meet them.

The build tree is taken from $build, else build/release.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
CALLS = 66  # of a class: as many as learning takes, and one more


class TuningTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "tuning.json"

    def job(self, tool, *words, ranks=3, **environment):
        variables = {**os.environ, "IBCOLL_LEARN": "on", "IBCOLL_TUNING": str(self.file), **environment}
        return subprocess.run([str(word) for word in (BUILD / "bin/ibcoll_run", "-n", ranks, BUILD / "bin" / tool, *words)],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={name: value for name, value in variables.items() if value is not None})

    def learn(self, **environment):
        done = self.job("ibcoll_perf", "allgather", "-m", "64", "-x", "0", "-i", CALLS, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def reason(self, **environment):
        done = self.job("ibcoll_info", "-A", "--collective", "allgather", "--bytes", "64", "--json", **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["collectives"]["allgather"]["selection"][0]["reason"]

    def test_the_next_job_knows_what_one_has_learned(self):
        self.assertTrue(self.reason().startswith("lowest predicted cost"))
        self.assertFalse(self.file.exists())
        self.assertEqual(self.learn(), "")
        choices = json.loads(self.file.read_text())["choices"]
        self.assertIn("allgather", [choice["collective"] for choice in choices])
        self.assertRegex(self.reason(), r"^read, learned by an earlier job from \d+ calls")
        self.assertTrue(self.reason(IBCOLL_LEARN="off").startswith("lowest predicted cost"))
        self.assertTrue(self.reason(IBCOLL_TUNING="off").startswith("lowest predicted cost"))
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["tuning.json"])

    def test_the_file_is_in_the_users_cache(self):
        self.learn(IBCOLL_TUNING=None, XDG_CACHE_HOME=str(self.folder))
        self.assertEqual(len(list((self.folder / "ibcoll").glob("tuning-*.json"))), 1)

    def test_without_learning_nothing_is_written(self):
        self.learn(IBCOLL_LEARN="off")
        self.assertFalse(self.file.exists())

    def test_a_damaged_file_is_one_line_and_stays(self):
        for text in ("{", "not JSON at all", '{"ibcoll_tuning": 1, "version": 3}'):
            with self.subTest(text=text):
                self.file.write_text(text)
                said = self.learn()
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn(str(self.file), said)
                self.assertIn("damaged", said)
                self.assertEqual(self.file.read_text(), text)

    def test_a_foreign_file_is_one_line_and_stays(self):
        self.learn()
        known = json.loads(self.file.read_text())
        for member in ("version", "hardware", "transport", "layout"):
            with self.subTest(member=member):
                text = json.dumps({**known, member: "of another one"})
                self.file.write_text(text)
                said = self.learn()
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn(f"is of another {member}", said)
                self.assertEqual(self.file.read_text(), text)

    def test_a_file_that_cannot_be_written_is_one_line(self):
        blocked = self.folder / "a_file"
        blocked.write_text("")
        said = self.learn(IBCOLL_TUNING=str(blocked / "tuning.json"))
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("a_file/tuning.json", said)

    def test_ibcoll_tune_fills_the_file(self):
        words = ("-m", "64:100", "--collective", "allgather,barrier")
        for why in (r"learned from \d+ calls", r"read, learned by an earlier job from \d+ calls"):
            done = self.job("ibcoll_tune", *words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stderr, "")  # no progress bar without a terminal
            rows = [line.split(maxsplit=3) for line in done.stdout.splitlines()[1:]]
            self.assertEqual([row[:2] for row in rows], [["barrier", "0"], ["allgather", "64"], ["allgather", "80"],
                                                         ["allgather", "96"]])
            for row in rows:
                self.assertRegex(row[3], f"^{why}$")
        self.assertRegex(self.reason(), "^read")

    def test_ibcoll_perf_names_the_algorithm_that_was_learned(self):
        self.learn()
        known = json.loads(self.file.read_text())
        for choice in known["choices"]:
            choice.update(algorithm="ring" if choice["collective"] == "allgather" else choice["algorithm"])
        self.file.write_text(json.dumps(known))
        for words in ((), ("--calls", "blocking"), ("--calls", "oneshot"), ("--arrival", "none")):
            with self.subTest(words=words):
                done = self.job("ibcoll_perf", "allgather", "-m", "64", "-x", "9", "-i", "9", "--format", "csv", *words)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(",ring,", done.stdout)

    def test_ibcoll_tune_refuses_what_cannot_be_learned(self):
        for words in (["--collective", "bcast"], ["-m", "7"], ["-m", "0:64"], ["--colour"]):
            with self.subTest(words=words):
                self.assertEqual(self.job("ibcoll_tune", *words, ranks=1).returncode, 2)

    def test_a_malformed_setting_is_refused(self):
        done = self.job("ibcoll_info", "-A", IBCOLL_LEARN="perhaps")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("IBCOLL_LEARN=perhaps", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
