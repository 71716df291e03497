# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/results/arrival.md, which stand between two markers."""

import textwrap

import arrival_figures
import report

# The improvement over MVAPICH that the paper's text states (sections 6.1, 6.2): collective, MIF, bytes, form, factor. It
# gives no size for MIF 512; that of MIF 32 stands for it.
PAPER = [("alltoall", 32, 8192, "pap_direct", 3.1), ("alltoall", 32, 4, "pap_shm_direct", 3.5),
         ("alltoall", 512, 8192, "pap_direct", 1.5), ("alltoall", 512, 4, "pap_shm_direct", 1.2),
         ("allgather", 32, 8192, "pap_direct", 3.1), ("allgather", 32, 1, "pap_shm_direct", 2.5),
         ("allgather", 512, 8192, "pap_direct", 1.3), ("allgather", 512, 1, "pap_shm_direct", 1.2)]


class PageError(Exception):
    """A text for the user."""


def micros(value):
    """Microseconds, short."""
    return f"{value:.0f}" if value < 100_000 else f"{value / 1000:.0f}k"


def by_size(cells):
    """{bytes: {form: cell}}"""
    sizes = {}
    for cell in cells:
        sizes.setdefault(cell["bytes"], {})[cell["form"]] = cell
    return dict(sorted(sizes.items()))


def ratio(forms, peer, form, column):
    """How many times longer the peer takes, as text."""
    if peer not in forms or form not in forms or forms[form][column] <= 0:
        return "-"
    return f"{forms[peer][column] / forms[form][column]:.2f}"


def headlines(cells):
    head = ["### The paper's headlines", "",
            "| collective | MIF | bytes | form | paper | mean, over Open MPI | after the last, over Open MPI | mean, over direct |",
            "|---|---|---|---|---|---|---|---|"]
    lines = []
    for collective, mif, size, form, factor in PAPER:
        sizes = by_size(arrival_figures.of(cells, collective, 16, f"random:{mif}"))
        if not sizes:
            continue
        nearest = min(sizes, key=lambda one, wanted=size: abs(one - wanted))
        plain = form.replace("pap_", "")
        lines.append(f"| {collective} | {mif} | {report.size_text(nearest)} | {form} | {factor} | "
                     f"{ratio(sizes[nearest], 'Open MPI', form, 't_avg')} | "
                     f"{ratio(sizes[nearest], 'Open MPI', form, 't_last')} | "
                     f"{ratio(sizes[nearest], plain, form, 't_avg')} |")
    return ["", *head, *lines] if lines else []


def summary(cells):
    lines = ["### Chosen form over Open MPI, after the last arrival", "",
             "| collective | ranks | arrival | geometric mean | worst cell | over the bound, 8 KB and more |",
             "|---|---|---|---|---|---|"]
    for collective, ranks, pattern in arrival_figures.experiments(cells):
        sizes = by_size(arrival_figures.of(cells, collective, ranks, pattern))
        both = {size: forms["Open MPI"]["t_last"] / forms["chosen"]["t_last"] for size, forms in sizes.items()
                if "Open MPI" in forms and "chosen" in forms and forms["chosen"]["t_last"] > 0}
        over = [forms["chosen"]["t_last"] / forms["chosen"]["bound"] for size, forms in sizes.items()
                if size >= 8192 and "chosen" in forms and forms["chosen"]["bound"] > 0]
        if both:
            worst = min(both, key=both.get)
            lines.append(f"| {collective} | {ranks} | {pattern} | {report.geometric_mean(list(both.values())):.2f} | "
                         f"{both[worst]:.2f} at {report.size_text(worst)} | "
                         f"{f'{report.geometric_mean(over):.2f}' if over else '-'} |")
    return lines


def experiment(cells, forms, title, figure):
    present = [form for form in forms if any(cell["form"] == form for cell in cells)]
    lines = [f"### {title}", "", f"![{title}](figures/{figure})", "",
             "Microseconds (k: thousands) from the last arrival to the last exit / mean time in the call.", "",
             "|bytes|" + "|".join(present) + "|bound|ran|", "|---" * (len(present) + 3) + "|"]
    for size, row in by_size(cells).items():
        figures = [f"{micros(row[form]['t_last'])} / {micros(row[form]['t_avg'])}" if form in row else "-" for form in present]
        bound = next(iter(row.values()))["bound"]
        ran = row["chosen"]["algorithm"] if "chosen" in row else "-"
        lines.append(f"|{report.size_text(size)}|" + "|".join(figures) + f"|{bound:.0f}|{ran}|")
    return lines


def write(page, bed, cells, forms, figures, about):
    """Replaces what stands between the markers of the bed."""
    begin, end = f"<!-- {bed}: begin -->", f"<!-- {bed}: end -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise PageError(f"{page}: '{begin}' and then '{end}' are expected once each; take the page from the repository")
    lines = [textwrap.fill(f"Measured {about}.", 120), "", *summary(cells), *headlines(cells)]
    for (collective, ranks, pattern), figure in figures.items():
        title = f"{collective}, {ranks} ranks, arrival {pattern}"
        lines += ["", *experiment(arrival_figures.of(cells, collective, ranks, pattern), forms, title, figure)]
    before, after = text[:text.index(begin)], text[text.index(end):]
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + after, encoding="utf-8")
