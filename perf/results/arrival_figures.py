# SPDX-License-Identifier: BSD-3-Clause
"""The figures of docs/results/arrival.md: one SVG for each collective, number of ranks and pattern, by gnuplot."""

import shutil
import subprocess

PANELS = {"t_last": "from the last arrival to the last exit", "t_avg": "mean time in the call"}


class DrawError(Exception):
    """A text for the user."""


def require():
    if not shutil.which("gnuplot"):
        raise DrawError("gnuplot is missing: tools/install_packages figures")


def experiments(cells):
    """(collective, ranks, pattern) in the order of the cells."""
    return list(dict.fromkeys((cell["collective"], cell["ranks"], cell["pattern"]) for cell in cells))


def of(cells, collective, ranks, pattern):
    wanted = (collective, ranks, pattern)
    return [cell for cell in cells if (cell["collective"], cell["ranks"], cell["pattern"]) == wanted]


def script(path, title, cells, forms):
    """What gnuplot reads: both panels, a line for each form, and the bound where it is the measure."""
    lines = [f"set terminal svg size 1100,480 font 'sans,12' background 'white'; set output '{path}'",
             f"set multiplot layout 1,2 title '{title}' noenhanced",
             "set logscale xy 2; set logscale y 10; set format x '%.0b%B'; set grid; set key top left noenhanced",
             "set xlabel 'bytes'; set ylabel 'us'"]
    present = [form for form in forms if any(cell["form"] == form for cell in cells)]
    for column, panel in PANELS.items():
        series = [(form, [(cell["bytes"], cell[column]) for cell in cells if cell["form"] == form]) for form in present]
        if column == "t_last":
            series.append(("bound", sorted({cell["bytes"]: cell["bound"] for cell in cells}.items())))
        lines.append(f"set title '{panel}'")
        for number, (_, points) in enumerate(series):
            lines += [f"$data{number} << EOD", *(f"{x} {y}" for x, y in points), "EOD"]
        styles = ["lines dashtype 2 linecolor 'black'" if form == "bound" else "linespoints" for form, _ in series]
        lines.append("plot " + ", ".join(f"$data{number} with {style} title '{form}'"
                                         for number, ((form, _), style) in enumerate(zip(series, styles))))
    return "\n".join(lines + ["unset multiplot"]) + "\n"


def draw(cells, forms, folder):
    """{(collective, ranks, pattern): file name}"""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for collective, ranks, pattern in experiments(cells):
        name = f"arrival_{collective}_{ranks}_{pattern.replace(':', '_')}.svg"
        title = f"{collective}, {ranks} ranks on {cells[0]['nodes']} nodes, arrival {pattern}"
        text = script(folder / name, title, of(cells, collective, ranks, pattern), forms)
        done = subprocess.run(["gnuplot"], input=text, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0 or not (folder / name).exists():
            raise DrawError(f"gnuplot drew no {name}: {done.stderr.strip()[-500:]}")
        drawn[(collective, ranks, pattern)] = name
    return drawn
