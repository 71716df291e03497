# SPDX-License-Identifier: BSD-3-Clause
"""The figures of docs/results, by gnuplot: lines in panels, and the cells of a comparison as dots."""

import dataclasses
import math
import shutil
import subprocess
import sys


@dataclasses.dataclass
class Panel:
    title: str
    x_label: str
    y_label: str
    lines: dict  # name -> [(x, y), ...]
    base: int = 2  # of the x axis, whose scale is logarithmic, as that of the y axis
    dashed: tuple = ()  # names of lines that are limits, not measured


def require():
    if not shutil.which("gnuplot"):
        sys.exit("gnuplot is missing: tools/install_packages figures")


def draw(path, script):
    require()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or not path.exists():
        sys.exit(f"gnuplot drew no {path}: {done.stderr.strip()[-500:]}")


def head(path, width, height):
    return [f"set terminal svg size {width},{height} font 'sans,11' background 'white'", f"set output '{path}'",
            "set grid", "set border 3", "set xtics nomirror", "set ytics nomirror"]


def data(name, points):
    return [f"${name} << END", *(" ".join(map(str, point)) for point in points), "END"]


def panels(path, every):
    """Panels side by side."""
    lines = head(path, 420 * len(every), 430) + [f"set multiplot layout 1,{len(every)}", "set logscale y 10",
                                                 "set key below noenhanced", "set bmargin 8", "set linetype 5 linecolor '#882255'"]
    for number, panel in enumerate(every):
        lines += [f"set title '{panel.title}' noenhanced", f"set xlabel '{panel.x_label}'", f"set ylabel '{panel.y_label}'",
                  f"set logscale x {panel.base}", f"set format x '{'%.0b%B' if panel.base == 2 else '%g'}'"]
        plots = []
        for index, (name, points) in enumerate(panel.lines.items()):
            block = f"data_{number}_{index}"
            lines += data(block, points)
            style = "lines dashtype 2 linecolor 'black'" if name in panel.dashed else f"linespoints pt {index + 4} ps 0.6"
            plots.append(f"${block} with {style} title '{name}'")
        lines.append("plot " + ", ".join(plots))
    draw(path, "\n".join(lines + ["unset multiplot"]) + "\n")


def dots(path, y_label, columns):
    """columns: {name: ratios}. Each ratio is a dot, each geometric mean a triangle; a line stands at 1."""
    points, means, names = [], [], []
    for column, (name, ratios) in enumerate(columns.items()):
        ordered = sorted(ratios)
        # Spread over some columns, so that equal ratios do not hide each other.
        points += [(column + (index % 7 - 3) * 0.08, ratio) for index, ratio in enumerate(ordered)]
        means.append((column, math.exp(sum(map(math.log, ordered)) / len(ordered))))
        names.append(f"'{name}' {column}")
    lines = head(path, max(420, 62 * len(columns) + 120), 420)
    lines += ["set logscale y 10", "set key below", f"set ylabel '{y_label}'", f"set xrange [-0.6:{len(columns) - 0.4}]",
              f"set xtics ({', '.join(names)}) rotate by 30 right noenhanced"]
    lines += data("cells", points) + data("means", means)
    lines.append("plot 1 with lines linecolor 'black' dashtype 2 notitle, $cells with points pt 7 ps 0.4 linecolor "
                 "'#4477aa' title 'one collective at one size', $means with points pt 9 ps 1.4 linecolor '#cc3311' "
                 "title 'geometric mean'")
    draw(path, "\n".join(lines) + "\n")
