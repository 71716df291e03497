# SPDX-License-Identifier: BSD-3-Clause
"""results.tsv: of each fault what the last run with -w found."""

import csv
import hashlib
import pathlib

FILE = pathlib.Path(__file__).with_name("results.tsv")
COLUMNS = ("fault", "digest", "suite", "found", "by")


def digest(fault):
    """Another one when the fault, or what should notice it, is another one."""
    text = "\0".join((fault.file, fault.old, fault.new, fault.suite, fault.tests))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Results:
    def __init__(self):
        self.rows = {}
        self.read()

    def read(self):
        if FILE.exists():
            with FILE.open(encoding="utf-8", newline="") as file:
                self.rows = {row["fault"]: row for row in csv.DictReader(file, delimiter="\t")}

    def of(self, fault):
        """What was found of this very fault, or "not run"."""
        row = self.rows.get(fault.name)
        return row["found"] if row and row["digest"] == digest(fault) else "not run"

    def put(self, fault, found, by):
        self.read()  # another run may have written since
        self.rows[fault.name] = dict(zip(COLUMNS, (fault.name, digest(fault), fault.suite, found.split(":")[0], by)))
        with FILE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows[name] for name in sorted(self.rows))
