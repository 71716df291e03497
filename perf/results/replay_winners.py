# SPDX-License-Identifier: BSD-3-Clause
"""Which of several runs of a program is the fastest at each call site: as replays of one recording say, and as measured."""

import statistics
import sys

import page  # pylint: disable=unused-import  # first: it makes perf/peers known
import launch

DIFFERS = 1.2  # one run takes so much longer than another, in all rounds; else none of the two is faster
LEAST = 0.05   # of the time in collectives; call sites with less, of a few calls, are left out
OTHERS = {"openmpi": "as openmpi", "best": "best of each site"}  # runs, and the variants that name their algorithms


def site_times(variant):
    """Milliseconds in collectives, by call site."""
    times = {}
    for site in variant["sites"]:
        key = site["collective"], site["site"]
        times[key] = times.get(key, 0) + 1e3 * site["in_collectives_s"]
    return times


def algorithms(variant):
    """One for each collective: that of the call site which takes longest."""
    return {site["collective"]: site["algorithm"].split(" and ")[0]
            for site in sorted(variant["sites"], key=lambda site: site["in_collectives_s"])}


def settings(names):
    """The environment in which ibcoll takes them."""
    return {f"IBCOLL_{collective.upper()}": name for collective, name in names.items()}


def runs(answer, record, replay):
    """What each call site takes in each run. `answer`: of the replay of the program as ibcoll runs it. Other runs force
    algorithms of some collectives, and have the call sites of these. `record(settings)`: runs the program with these, and
    returns its trace. `replay(trace, option...)`: an answer."""
    variants = {variant["name"]: variant for variant in answer["variants"]}
    recorded, played = variants["recorded"], variants["replayed as recorded"]
    own, of_model = site_times(recorded), site_times(played)
    least = LEAST * sum(own.values())
    rows = []
    for run, variant in OTHERS.items():
        known = algorithms(played)
        names = {collective: name for collective, name in algorithms(variants[variant]).items() if name != known[collective]}
        if not names:
            continue
        given = ",".join(f"{collective}={name}" for collective, name in names.items())
        try:
            measured = site_times(replay(record(settings(names)))["variants"][0])
            forced = {one["name"]: one for one in replay(None, "--algorithm", given)["variants"]}["algorithms as given"]
        except launch.CompareError as problem:  # such as an algorithm that does not apply to a smaller communicator
            print(f"left out: {given}: {problem}", file=sys.stderr)
            continue
        predicted = site_times(forced)
        for key in own:
            if key[0] in names and key in measured and own[key] >= least:
                rows += [row_of(key, "ibcoll", own, of_model), row_of(key, run, measured, predicted)]
    return rows


def row_of(key, run, measured, predicted):
    return {"collective": key[0], "site": key[1], "run": run, "measured_ms": measured[key], "predicted_ms": predicted[key]}


def medians(rounds):
    """Of each call site and run that all rounds have: the medians, and the range of what was measured."""
    same = {}
    for rows in rounds:
        for key, row in {(row["collective"], row["site"], row["run"]): row for row in rows}.items():
            same.setdefault(key, []).append(row)
    found = []
    for rows in same.values():
        if len(rows) < len(rounds):
            continue
        measured = [row["measured_ms"] for row in rows]
        found.append({**rows[0], "measured_ms": statistics.median(measured),
                      "predicted_ms": statistics.median(row["predicted_ms"] for row in rows),
                      "least_ms": min(measured), "most_ms": max(measured)})
    return found


def verdicts(rows):
    """For each call site with a run that is slower than another one: whether the run that the replays call the fastest is
    slower than none."""
    sites = {}
    for row in rows:
        sites.setdefault(tuple(row[key] for key in ("program", "ranks", "nodes", "collective", "site")), []).append(row)
    found = {}
    for key, of_site in sites.items():
        limit = DIFFERS * min(float(row["most_ms"]) for row in of_site)
        if any(float(row["least_ms"]) > limit for row in of_site):
            chosen = min(of_site, key=lambda row: float(row["predicted_ms"]))
            found[key] = float(chosen["least_ms"]) <= limit
    return found
