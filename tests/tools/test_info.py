# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_info as its users meet it.

The build tree is taken from $build, else build/release.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()


def info(ranks, *words, environment=None, launch=()):
    command = [BUILD / "bin/ibcoll_info", *words]
    if ranks:
        command = [BUILD / "bin/ibcoll_run", "-n", ranks, *launch, *command]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, **(environment or {})))


class InfoTest(unittest.TestCase):
    def said(self, *words, **more):
        done = info(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def document(self, *words, **more):
        return json.loads(self.said(*words, "--json", **more))

    def test_version(self):
        self.assertRegex(self.said(0, "-v"), r"ibcoll version \d+\.\d+\.\d+\n")
        self.assertIn("compiler", self.document(0, "-v")["build"])

    def test_without_options_it_shows_the_version_and_the_devices(self):
        self.assertEqual(set(self.document(0)), {"build", "bootstrap", "topology", "transports", "ranks"})

    def test_settings_have_default_value_origin_and_meaning(self):
        document = self.document(0, "-c", environment={"IBCOLL_TIMEOUT": "30"})
        self.assertEqual(set(document), {"settings"})
        settings = {entry["name"]: entry for entry in document["settings"]}
        for entry in settings.values():
            self.assertLessEqual({"name", "kind", "default", "value", "origin", "allowed", "meaning"}, set(entry))
        timeout = settings["IBCOLL_TIMEOUT"]
        self.assertEqual((timeout["value"], timeout["default"], timeout["origin"]), ("30", "600", "environment"))
        for collective in tables.collectives():
            self.assertIn(f"IBCOLL_{collective.upper()}", settings)
        self.assertIn("IBCOLL_TIMEOUT = 30  (environment; default 600)",
                      self.said(0, "-c", environment={"IBCOLL_TIMEOUT": "30"}))

    def test_kernels_of_reductions_are_the_best_that_the_processor_runs(self):
        with open("/proc/cpuinfo", encoding="ascii") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), set())
        best = "baseline"
        if {"avx2", "f16c"} <= flags:
            best = "avx2"
            if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
                best = "avx512"
        self.assertIn(f"\n  reduction_kernels: {best}\n", self.said(0, "-d"))

    def test_settings_from_a_file_name_its_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("# here\nIBCOLL_LOG = error\n")
            file.flush()
            self.assertIn(f"IBCOLL_LOG = error  ({file.name}:2; default warn)",
                          self.said(0, "-c", environment={"IBCOLL_CONFIG_FILE": file.name}))

    def test_forced_algorithms_that_do_not_apply_are_not_for_its_own_calls(self):
        shm = {"IBCOLL_ALLGATHER": "shm", "IBCOLL_ALLGATHERV": "shm"}
        ranks = self.document(4, "-d", environment=shm, launch=["--nodes", "2", "--net", "ucx"])["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1, 2, 3])

    def test_malformed_setting_is_named_and_the_version_is_still_there(self):
        done = info(0, "-v", environment={"IBCOLL_NET": "token-ring"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("ibcoll version", done.stdout)
        self.assertIn("IBCOLL_NET=token-ring", done.stderr)
        self.assertIn(tables.settings()["IBCOLL_NET"]["allowed"], done.stderr)

    def test_foreign_bytes_in_the_environment_do_no_harm(self):
        environment = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}
        environment[b"IBCOLL_VERBS_DEVICE"] = b"\xff\xfe"
        done = subprocess.run([BUILD / "bin/ibcoll_info", "-c", "--json"], capture_output=True, timeout=60, check=False,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)

    def test_unknown_variable_is_warned_of_once_with_the_nearest_name(self):
        done = info(3, "-v", environment={"IBCOLL_TIMOUT": "30"})
        self.assertEqual(done.stderr.count("IBCOLL_TIMOUT"), 1, done.stderr)
        self.assertIn("IBCOLL_TIMEOUT", done.stderr)

    def test_devices_of_a_job(self):
        document = self.document(4, "-d", launch=["--nodes", "2", "--net", "ucx"])
        self.assertEqual([rank["rank"] for rank in document["ranks"]], [0, 1, 2, 3])
        for rank in document["ranks"]:
            self.assertGreater(rank["private_bytes"], 100_000)
        self.assertEqual((document["bootstrap"]["name"], document["bootstrap"]["size"]), ("ibcoll_run", 4))
        names = {transport["name"] for transport in document["transports"]}
        self.assertLessEqual({"shm", *(row["name"] for row in tables.read()["networks"])}, names)
        self.assertEqual([one["open_to"] for one in document["transports"] if "open_to" in one], ["ranks of this job only"])
        text = self.said(4, "-d", launch=["--nodes", "2", "--net", "ucx"])
        self.assertEqual(text.count("transports\n"), 1)  # one rank speaks
        self.assertRegex(text, r"verbs:\n(?: {4,}.*\n)*? +reason: ")

    def test_the_speed_of_the_links_in_use(self):
        for given, used in (({}, 16000), ({"IBCOLL_LINK_MBITS": "250"}, 250)):  # loopback; what the user says
            transports = self.document(2, "-d", environment=given, launch=["--nodes", "2", "--net", "ucx"])["transports"]
            self.assertEqual([one["link_mbits"] for one in transports if "link_mbits" in one], [used])

    def test_devices_of_one_process(self):
        transports = {one["name"]: one for one in self.document(0, "-d")["transports"]}
        self.assertRegex(" ".join(transports["ucx"].get("choice", [transports["ucx"]["reason"]])), r"lo\b|UCX|ucx")
        self.assertRegex(transports["verbs"]["reason"], "RDMA|usable|verbs")

    def test_single_copy_is_that_of_all_ranks(self):
        shm = next(one for one in self.document(3, "-d")["transports"] if one["name"] == "shm")
        self.assertRegex(shm["single_copy_pairs"], r"^\d of 6$")
        self.assertEqual(shm["single_copy_pairs"] == "6 of 6", "between all ranks" in shm["single_copy"])
        timed = r"^[\d.]+ ns per byte copied through shared memory, [\d.]+ in long streams"
        reads = r", single-copy reads [\d.]+ us \+ [\d.]+ ns per byte"
        expected = timed + (reads if shm["single_copy_pairs"] == "6 of 6" else "") + "$"
        self.assertRegex(shm["timed_at_start"], f"^no, the machine was busy|{expected}")
        off = self.document(3, "-d", environment={"IBCOLL_SINGLE_COPY": "off"})["transports"]
        self.assertRegex(off[0]["timed_at_start"], f"^no, the machine was busy|{timed}$")
        self.assertIn("0 of 6", [one.get("single_copy_pairs") for one in off])

    def test_algorithms_and_what_would_run(self):
        document = self.document(4, "-A", "--bytes", "8:64K", launch=["--nodes", "2", "--net", "ucx"])["collectives"]
        self.assertEqual(set(document), set(tables.collectives()))
        for name, entry in document.items():
            known = {algorithm["name"] for algorithm in entry["algorithms"]}
            self.assertEqual(len(entry["selection"]), 1 if name == "barrier" else 14)
            for choice in entry["selection"]:
                self.assertIn(choice["algorithm"].split(":")[0], known)
                self.assertIn("predicted cost", choice["reason"])

    def test_selection_ends_with_the_largest_size(self):
        for sizes, expected in (("0", ["0"]), ("0:1", ["0", "1"]), ("3:13", ["3", "6", "12"])):
            chosen = self.document(2, "-A", "--collective", "bcast", "--bytes", sizes)["collectives"]["bcast"]["selection"]
            self.assertEqual([str(choice["bytes"]) for choice in chosen], expected)

    def test_sizes_that_are_no_doubles_are_reduced_whole(self):
        chosen = self.document(2, "-A", "--collective", "allreduce", "--bytes", "500004:1000008",
                               environment={"IBCOLL_DETERMINISTIC": "no"})  # of every order of operands
        odd, even = (float(re.search(r"ring ([\d.]+) us", choice["reason"])[1])
                     for choice in chosen["collectives"]["allreduce"]["selection"])
        self.assertGreater(odd, even / 4)

    def test_candidates_are_a_list(self):
        chosen = self.document(2, "-A", "--collective", "allgather", "--bytes", "8")["collectives"]["allgather"]
        self.assertRegex(chosen["selection"][0]["reason"], 
                         r"^lowest predicted cost, with and without a late rank: "
                         r"[\w:]+ [\d.]+ us \(late [\d.]+\)(, [\w:]+ [\d.]+ us \(late [\d.]+\))+(;|$)")

    def test_arrivals_decide(self):
        for arrival, reason in {"together": "lowest predicted cost:", "late": "lowest predicted cost with a late rank:"}.items():
            chosen = self.document(2, "-A", "--collective", "allgather", "--bytes", "8",
                                   environment={"IBCOLL_ARRIVAL": arrival})["collectives"]["allgather"]["selection"][0]
            self.assertTrue(chosen["reason"].startswith(reason), chosen["reason"])

    def test_forced_algorithm_is_the_reason(self):
        choice = self.document(2, "-A", "--collective", "alltoall", "--bytes", "8",
                               environment={"IBCOLL_ALLTOALL": "pairwise"})["collectives"]["alltoall"]["selection"][0]
        self.assertEqual(choice["algorithm"], "pairwise")
        self.assertIn("IBCOLL_ALLTOALL", choice["reason"])

    def test_text_of_one_collective(self):
        text = self.said(2, "-A", "--collective", "bcast")
        self.assertIn("bcast\n", text)
        self.assertNotIn("alltoall\n", text)
        self.assertIn("would run, by bytes:", text)

    def test_bad_options(self):
        for words in (["--colour"], ["-A", "--collective", "scam"], ["-A", "--bytes", "9:8"], ["-A", "--bytes", "x"]):
            with self.subTest(words=words):
                done = info(2, *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words[-1].split(":")[0], done.stderr)
                self.assertRegex(done.stderr, r"(?m)^ibcoll_info: .*; see ibcoll_info --help$")

    def test_full_disk_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([BUILD / "bin/ibcoll_info", "-v"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)
