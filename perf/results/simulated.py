# SPDX-License-Identifier: BSD-3-Clause
"""Runs of ibcoll_sim, several at a time, as rows of its CSV."""

import concurrent.futures
import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"  # perf/results/simulation --build


def run(command):
    """One command line as a list of dictionaries; columns that have numbers are numbers."""
    program = BUILD / "bin/ibcoll_sim"
    done = subprocess.run([program, *command.split(), "--format", "csv"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ibcoll_sim {command}: status {done.returncode}: {done.stderr.strip()}")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    for row in rows:
        row["time_us"] = float(row["time_us"]) if row["time_us"] else None
        row["bytes"] = int(row["bytes"])
        row["name"] = row["algorithm"].split(":")[0]
    return rows


def run_all(commands):
    """{key: command} to {key: rows}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(commands, pool.map(run, commands.values())))


def times(rows):
    """{algorithm without its parameter: microseconds} of those that apply."""
    return {row["name"]: row["time_us"] for row in rows if row["time_us"] is not None}
