# SPDX-License-Identifier: BSD-3-Clause
"""A build of ibcoll whose table of constants is wrong: each has a factor of its own, between 1/4 and 4, but for those
that the table computes from others."""

import os
import pathlib
import random
import re

import launch

TABLE = "runtime/transport/cost_constants.h"
BUILD_SECONDS = 3600
FACTOR = 4  # at most, and at least its reciprocal
PARTS = {"kPathOfCall", "kLevelsOfLongBlock"}  # constants that are a part of a whole: at most 1
NUMBER = re.compile(r"constexpr (double|uint64_t) (\w+) = ([^;]+);")
LINK = re.compile(r"constexpr LinkModel (\w+)\{([^}]*)\};")


def falsified(table, seed):
    """The text of the table with other values, and their names. Times that a job measures when it starts stay right."""
    chance, names = random.Random(seed), []

    def times(text):
        return text.strip() if re.search(r"\bk[A-Z]", text) else f"({text.strip()}) * {FACTOR ** chance.uniform(-1, 1):.4f}"

    def number(found):
        kind, name, value = found.groups()
        names.append(name)
        value = times(value)
        if name in PARTS:
            value = f"({value} < 1 ? {value} : 1)"
        return f"constexpr {kind} {name} = " + (f"static_cast<uint64_t>({value})" if kind == "uint64_t" else value) + ";"

    def link(found):
        name, fields = found[1], found[2].split(",")
        names.append(name)
        return f"constexpr LinkModel {name}{{{', '.join([*map(times, fields[:3]), *fields[3:]])}}};"

    text = LINK.sub(link, NUMBER.sub(number, table))
    if len(names) != len(re.findall(r"\bconstexpr\b", table)):
        raise launch.CompareError(f"{TABLE}: a constant in another form than 'constexpr TYPE NAME = VALUE;', after {names}")
    return text, names


def build(seed, folder):
    """The tree `folder`, built with the table of this seed in place of the real one; only what includes it is built again."""
    text, _ = falsified((launch.ROOT / TABLE).read_text(encoding="utf-8"), seed)
    table = pathlib.Path(folder) / "constants" / TABLE
    table.parent.mkdir(parents=True, exist_ok=True)
    if not table.exists() or table.read_text(encoding="utf-8") != text:
        table.write_text(text, encoding="utf-8")
    flags = f'{os.environ.get("CXXFLAGS", "")} -iquote "{folder}/constants"'  # before the folders of -I
    launch.text_of([launch.ROOT / "tools/build_tree", "release", folder, "ibcoll_regret", "ibcoll_run"], BUILD_SECONDS,
                   env={**os.environ, "CXXFLAGS": flags})
