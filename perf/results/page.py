# SPDX-License-Identifier: BSD-3-Clause
"""A page of docs/results: its data as CSV, and the block between two markers that its script writes anew."""

import csv
import io
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf/peers"))
import output  # pylint: disable=wrong-import-position
from report import size_text  # pylint: disable=wrong-import-position,unused-import

RESULTS = ROOT / "docs/results"
TRIED = ROOT / "build/results"  # where --try writes


class Page:
    """The page NAME.md in a folder, data/NAME_*.csv and figures/NAME.svg."""

    def __init__(self, name, folder=RESULTS):
        self.name, self.folder = name, pathlib.Path(folder)
        self.path = self.folder / f"{name}.md"
        self.figure = self.folder / f"figures/{name}.svg"
        if not self.path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(RESULTS / f"{name}.md", self.path)

    def data(self, part):
        return self.folder / f"data/{self.name}_{part}.csv"

    def read(self, part):
        """Rows of a CSV, all as text; none where it does not exist."""
        path = self.data(part)
        if not path.exists():
            return []
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def write(self, part, rows):
        """`rows`: dictionaries with the same keys; numbers to three digits after the point."""
        path = self.data(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()})
        output.write(path, text.getvalue())

    def fill(self, *blocks):
        """Puts the blocks of text between <!-- results --> and <!-- end of results -->."""
        page = self.path.read_text(encoding="utf-8")
        begin, end = "<!-- results -->", "<!-- end of results -->"
        if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
            sys.exit(f"{self.path}: {begin} and then {end} must be there once each; take the page from the repository")
        text = "\n\n".join([begin, *filter(None, blocks), end])
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        output.write(self.path, re.sub(pattern, lambda _: text, page, flags=re.DOTALL))

    def image(self, text):
        return f"![{text}](figures/{self.name}.svg)"


def table(head, rows, texts=1):
    """A Markdown table; the first `texts` columns are text, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * texts + "--:|" * (len(head) - texts)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def add_only(parser, known):
    parser.add_argument("--only", metavar="LIST", action="extend", type=lambda text: text.split(","),
                        help=f"of {', '.join(known)}; with commas between them, or --only several times")


def chosen_names(parser, names, known):
    """`names`, or all without any. A name that is none ends the program."""
    names = names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"--only: nothing is named {', '.join(unknown)}; these are: {', '.join(known)}")
    return names
