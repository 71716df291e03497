# SPDX-License-Identifier: BSD-3-Clause
"""Which of several runs of a program is the fastest at each call site: as replays of one recording say, and as measured."""

import statistics
import sys

import page  # pylint: disable=unused-import  # first: it makes perf/peers known
import launch

DIFFERS = 1.2  # the slowest run of a call site over the fastest one; below, no run is the fastest
LEAST = 0.01   # of the time in collectives; call sites with less are left out
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
    """Rows of the data: what each call site takes in each run. `answer`: of the replay of the program as ibcoll runs it.
    `record(settings)`: runs the program with these, and returns its trace. `replay(trace, option...)`: an answer."""
    variants = {variant["name"]: variant for variant in answer["variants"]}
    recorded, played = variants["recorded"], variants["replayed as recorded"]
    found = [("ibcoll", site_times(recorded), site_times(played))]
    for name, variant in OTHERS.items():
        names = algorithms(variants[variant])
        if names == algorithms(played):
            continue
        given = ",".join(f"{collective}={algorithm}" for collective, algorithm in names.items())
        try:
            measured = replay(record(settings(names)))["variants"][0]
            predicted = {one["name"]: one for one in replay(None, "--algorithm", given)["variants"]}["algorithms as given"]
        except launch.CompareError as problem:  # such as an algorithm that does not apply to a smaller communicator
            print(f"left out: {given}: {problem}", file=sys.stderr)
            continue
        found.append((name, site_times(measured), site_times(predicted)))
    least = LEAST * sum(found[0][1].values())
    return [{"collective": collective, "site": place, "run": name, "measured_ms": measured[collective, place],
             "predicted_ms": predicted[collective, place]}
            for collective, place in found[0][1] if found[0][1][collective, place] >= least
            for name, measured, predicted in found if (collective, place) in measured]


def medians(rounds):
    """Of the rows of all rounds: of each call site and run the medians of its times."""
    same = {}
    for row in (row for rows in rounds for row in rows):
        same.setdefault((row["collective"], row["site"], row["run"]), []).append(row)
    return [{**rows[0], **{key: statistics.median(row[key] for row in rows) for key in ("measured_ms", "predicted_ms")}}
            for rows in same.values()]


def verdicts(rows):
    """For each call site whose runs differ: whether the run that the replays call the fastest is, within DIFFERS."""
    sites = {}
    for row in rows:
        sites.setdefault(tuple(row[key] for key in ("program", "ranks", "nodes", "collective", "site")), []).append(row)
    found = {}
    for key, of_site in sites.items():
        times = [float(row["measured_ms"]) for row in of_site]
        if max(times) > DIFFERS * min(times):
            chosen = min(of_site, key=lambda row: float(row["predicted_ms"]))
            found[key] = float(chosen["measured_ms"]) <= DIFFERS * min(times)
    return found
