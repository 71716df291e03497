# SPDX-License-Identifier: BSD-3-Clause
"""tables.json of the build tree: what is said where it is missing or old, and what has to fit its rows."""

import os
import pathlib
import tempfile
import unittest

import tables


class Tables(unittest.TestCase):
    def test_every_transport_between_nodes_has_its_folder(self):
        for row in tables.read()["networks"]:
            self.assertTrue((tables.ROOT / "runtime" / row["name"] / "CMakeLists.txt").exists(), row)

    def test_types_and_operations(self):
        self.assertIn({"name": "double", "bytes": 8}, tables.read()["types"])
        self.assertIn({"name": "sum"}, tables.read()["operations"])

    def test_a_tree_that_has_to_be_built(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            with self.assertRaisesRegex(SystemExit, f"tables.json does not exist; build first: ninja -C {folder}$"):
                tables.read(build)
            (build / "tables.json").write_text("{}")
            self.assertEqual(tables.read(build), {})
            os.utime(build / "tables.json", (0, 0))
            with self.assertRaisesRegex(SystemExit, f"tables.json is older than .*; build first: ninja -C {folder}$"):
                tables.read(build)
