# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_tune times algorithms and writes a file, and later jobs read it: IBCOLL_TUNING as users meet it.

The build tree is taken from $build, else build/release.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()


class TuningTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "tuning.json"

    def job(self, tool, *words, ranks=3, **environment):
        variables = {**os.environ, "IBCOLL_TUNING": str(self.file), **environment}
        return subprocess.run([str(word) for word in (BUILD / "bin/ibcoll_run", "-n", ranks, BUILD / "bin" / tool, *words)],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={name: value for name, value in variables.items() if value is not None})

    def tune(self, *words, **environment):
        return self.job("ibcoll_tune", "--seconds", "0.001", *(words or ("-m", "64", "--collective", "allgather")),
                        **environment)

    def tuned(self, *words, **environment):
        done = self.tune(*words, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [line.split() for line in done.stdout.splitlines()[1:]]

    def explained(self, **environment):
        """Of an allgather of 64 bytes: the algorithm and the reason, and what the job says."""
        done = self.job("ibcoll_info", "-A", "--collective", "allgather", "--bytes", "64", "--json", **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        choice = json.loads(done.stdout)["collectives"]["allgather"]["selection"][0]
        return choice["algorithm"], choice["reason"], done.stderr

    def change(self, **members):
        """In the file, of the choice for allgather."""
        whole = json.loads(self.file.read_text())
        for choice in whole["choices"]:
            if choice["collective"] == "allgather":
                choice.update(members)
        self.file.write_text(json.dumps(whole))

    def test_jobs_take_what_was_timed(self):
        predicted, reason, _ = self.explained()
        self.assertTrue(reason.startswith("lowest predicted cost"), reason)
        self.assertFalse(self.file.exists())
        self.tuned()
        self.assertRegex(self.explained()[1], r"^read from the tuning file, timed in \d+ calls: ")
        self.change(algorithm="ring")
        self.assertNotEqual(predicted, "ring")
        self.assertEqual(self.explained()[0], "ring")
        self.assertEqual(self.explained(IBCOLL_TUNING="off")[0], predicted)
        self.assertEqual(self.explained(IBCOLL_ALLGATHER="bruck")[0], "bruck")
        for words in ((), ("--calls", "blocking"), ("--calls", "oneshot"), ("--arrival", "none")):
            with self.subTest(words=words):
                done = self.job("ibcoll_perf", "allgather", "-m", "64", "-x", "9", "-i", "9", "--format", "csv", *words)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(",ring,", done.stdout)

    def test_jobs_write_nothing(self):
        done = self.job("ibcoll_perf", "allgather", "-m", "64", "-i", "9")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_file_is_in_the_users_cache(self):
        self.tuned(IBCOLL_TUNING=None, XDG_CACHE_HOME=str(self.folder))
        self.assertEqual(len(list((self.folder / "ibcoll").glob("tuning-*.json"))), 1)
        self.assertRegex(self.explained(IBCOLL_TUNING=None, XDG_CACHE_HOME=str(self.folder))[1], "^read")

    def test_every_collective_and_size_has_a_row(self):
        rows = self.tuned("-m", "64:100", "--collective", "allgather,barrier,bcast,reduce_scatter")
        self.assertEqual([row[:2] for row in rows],
                         [["barrier", "0"]] + [[name, size] for name in ("bcast", "allgather", "reduce_scatter")
                                               for size in ("64", "80", "96")])
        self.assertEqual(len(json.loads(self.file.read_text())["choices"]), len(rows))

    def test_jobs_at_once_keep_the_choices_of_all(self):
        names = ("barrier", "bcast", "allgather", "scan")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in pool.map(lambda name: self.tune("-m", "8", "--collective", name), names):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({choice["collective"] for choice in json.loads(self.file.read_text())["choices"]}, set(names))
        self.tuned("-m", "8", "--collective", "bcast")
        self.assertEqual(len(json.loads(self.file.read_text())["choices"]), len(names), "a choice is there twice")

    def check_refused(self, text):
        """By ibcoll_tune, in one line of one rank; a job says one line and continues. The file stays."""
        before = self.file.read_bytes()
        done = self.tune()
        self.assertEqual(done.returncode, 1)
        said = [line for line in done.stderr.splitlines() if line.startswith("ibcoll_tune: ")]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(f"{self.file} {text}", said[0])
        warning = self.explained()[2]
        self.assertEqual(warning.count("\n"), 1, warning)
        self.assertIn(f"{self.file} {text}", warning)
        self.assertNotIn("exception", done.stderr + warning)
        self.assertEqual(self.file.read_bytes(), before)

    def test_a_damaged_file_is_refused(self):
        for text in ("{", "not JSON at all", '{"ibcoll_tuning": 1, "version": 3}', "[]", "\xff\x00"):
            with self.subTest(text=text):
                self.file.write_text(text, encoding="latin-1")
                self.check_refused("is damaged")

    def test_a_foreign_file_is_refused(self):
        self.tuned()
        known = json.loads(self.file.read_text())
        for member in ("version", "hardware", "transport", "layout"):
            with self.subTest(member=member):
                self.file.write_text(json.dumps({**known, member: "of another one"}))
                self.check_refused(f"is of another {member}")

    def test_a_file_that_learning_wrote_is_read(self):
        """Its members are the same."""
        self.tuned()
        self.change(trials=33, us=1.5)
        self.assertTrue(self.explained()[1].startswith("read from the tuning file, timed in 33 calls: "))

    def test_what_cannot_be_written_is_refused_before_the_work(self):
        blocked = self.folder / "a_file"
        blocked.write_text("")
        for path, text in ((self.folder / "none/tuning.json", "/none does not exist"),
                           (blocked / "tuning.json", "a_file does not exist"), ("off", "IBCOLL_TUNING is off")):
            with self.subTest(path=path):
                done = self.tune("-m", "8:64K", IBCOLL_TUNING=str(path))
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(text, done.stderr)
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["a_file"])

    def test_one_rank_has_nothing_to_choose(self):
        done = self.job("ibcoll_tune", ranks=1)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("one rank", done.stderr)

    def test_a_full_disk_ends_it_on_all_ranks(self):
        words = ("-n", "2", "sh", "-c", f"exec {BUILD}/bin/ibcoll_tune --seconds 0.001 --collective barrier,bcast -m 8 >/dev/full")
        done = subprocess.run([BUILD / "bin/ibcoll_run", *words], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "IBCOLL_TUNING": str(self.file)})
        self.assertEqual(done.returncode, 1, done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith("ibcoll_tune: ")]
        self.assertEqual(said, ["ibcoll_tune: cannot write to standard output: No space left on device"])

    def test_wrong_options(self):
        for words in (["--collective", "alltoallv"], ["-m", "7"], ["-m", "0:64"], ["--colour"], ["--seconds", "nan"],
                      ["--seconds", "0"]):
            with self.subTest(words=words):
                self.assertEqual(self.job("ibcoll_tune", *words, ranks=1).returncode, 2)


if __name__ == "__main__":
    unittest.main()
