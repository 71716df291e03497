# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI over the reliable connections of UCX, on the device of ibcoll_run --rdma-in-memory. No other transport is left to
it between ranks of different nodes, so what arrives came through the device."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()


class OpenMpi(unittest.TestCase):
    def test_compares_with_ibcoll_on_one_device(self):
        if not shutil.which("mpirun.openmpi") or os.geteuid() != 0:
            self.skipTest("needs Open MPI, and root for namespaces")
        with tempfile.TemporaryDirectory() as folder:
            figures = pathlib.Path(folder, "figures.json")
            words = [ROOT / "perf/compare", "--net", "verbs", "--nodes", "2", "--quick", "--rounds", "1", "--bytes", "8:256K",
                     "--collectives", "barrier,alltoall,allreduce", "--libraries", "ibcoll,openmpi", "--build", BUILD,
                     "--timeout", "90", "--json", figures]
            done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = json.loads(figures.read_text(encoding="utf-8"))
        self.assertIn("2 nodes over verbs (" + found["device"], done.stdout)
        self.assertGreater(len(found["cells"]), 8)
        for cell in found["cells"]:
            self.assertGreater(min(cell["times_us"]["ibcoll"] + cell["times_us"]["openmpi"]), 0, cell)


if __name__ == "__main__":
    unittest.main()
