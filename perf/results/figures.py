# SPDX-License-Identifier: BSD-3-Clause
"""Line charts by gnuplot, and tables between markers of a Markdown file."""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
from report import size_text  # pylint: disable=wrong-import-position,unused-import


def chart(path, title, x_label, y_label, lines, logarithmic="xy", base=2, floor=None):
    """lines: {name: [(x, y), ...]}. Writes an SVG."""
    script = ['set terminal svg size 640,400 font "sans,11" background "white"',
              f'set output "{path}"\nset title "{title}"',
              f'set xlabel "{x_label}"\nset ylabel "{y_label}"\nset key outside right\nset grid\nset border 3',
              "set xtics nomirror\nset ytics nomirror"]
    if "x" in logarithmic:
        script.append(f"set logscale x {base}")
    if "y" in logarithmic:
        script.append("set logscale y 10")
    if floor is not None:
        script.append(f"set yrange [{floor}:*]")
    blocks = []
    for number, (name, points) in enumerate(lines.items()):
        data = "\n".join(f"{x} {y}" for x, y in points)
        blocks.append(f"$line{number} << END\n{data}\nEND")
    plots = ", ".join(f'$line{number} with linespoints pt {number + 4} ps 0.6 title "{name}" noenhanced'
                      for number, name in enumerate(lines))
    text = "\n".join(blocks + script + ["plot " + plots]) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["gnuplot"], input=text, text=True, check=True)
    except FileNotFoundError:
        sys.exit("gnuplot is missing: tools/install_packages figures")


def table(head, rows):
    """Lines of a Markdown table; the first column is text."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def fill(path, name, text):
    """Puts the text between <!-- NAME --> and <!-- end of NAME -->."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{path}: {begin} and {end} must be there once each")
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    page = re.sub(pattern, lambda _: f"{begin}\n\n{text}\n\n{end}", page, flags=re.DOTALL)
    path.write_text(page, encoding="utf-8")
