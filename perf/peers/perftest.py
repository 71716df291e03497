# SPDX-License-Identifier: BSD-3-Clause
"""The transport verbs beside perftest (ib_write_lat, ib_write_bw) on the same device: what perf/measure verbs prints.

Every round starts each program, so that other load on the machine affects all. A ratio is that of medians over rounds."""

import json
import os
import statistics
import subprocess
import time

PORT = 18600  # of perftest's own exchange, on loopback
TIMEOUT = 120  # seconds, for any one program
LATENCIES = [("put, notify=memory", "memory", "put"), ("put, notify=imm", "imm", "put"),
             ("message, notify=memory", "memory", "message"), ("message, notify=imm", "imm", "message")]


class PerftestError(Exception):
    """A text for the user."""


def put(program, notify, what, size, iterations):
    """What ibcoll_put says, as an object."""
    command = [str(program), what, str(size), str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env=dict(os.environ, IBCOLL_VERBS_NOTIFY=notify))
    if done.returncode != 0:
        raise PerftestError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def listens(port):
    lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}", encoding="ascii")]
    return any(line[1].endswith(f":{port:04X}") and line[3] == "0A" for line in lines)


def perftest(tool, transport, size, iterations, column):
    """One figure of one run: `column` of the line of results. The device and GID are those that ibcoll uses."""
    command = [tool, "-d", transport["device"].split(":")[0], "-i", transport["device"].split(":")[1], "-x",
               str(transport["gid_index"]), "-p", str(PORT), "-F", "-s", str(size), "-n", str(iterations)]
    # As ibcoll_put binds its ranks.
    first, second = [["taskset", "-c", str(core)] for core in (sorted(os.sched_getaffinity(0)) * 2)[:2]]
    with subprocess.Popen(second + command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 20
            while not listens(PORT):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise PerftestError(f"{' '.join(command)}: does not listen; is perftest installed?")
                time.sleep(0.05)
            done = subprocess.run(first + command + ["127.0.0.1"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
            server.wait(TIMEOUT)
        finally:
            server.kill()
    rows = [line.split() for line in done.stdout.splitlines()]
    rows = [row for row in rows if row and row[0] == str(size)]
    if done.returncode != 0 or not rows:
        raise PerftestError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return float(rows[-1][column])


def print_rows(title, unit, reference, times, ratio):
    print(f"{title:<34}{unit:>9}{'ratio':>8}  min..max")
    for name, values in times.items():
        line = f"  {name:<32}{statistics.median(values):>9.2f}"
        if name != reference:
            median = ratio(statistics.median(values), statistics.median(times[reference]))
            each = [ratio(own, other) for own, other in zip(values, times[reference])]
            line += f"{median:>8.2f}  {min(each):.2f}..{max(each):.2f}"
        print(line, flush=True)


def latency(program, transport, rounds, iterations=5000):
    times = {"ib_write_lat": []}
    for _ in range(rounds):
        times["ib_write_lat"].append(perftest("ib_write_lat", transport, 8, iterations, 4))  # t_typical, the median
        for name, notify, what in LATENCIES:
            times.setdefault(name, []).append(put(program, notify, what, 8, iterations)["median_us"])
    print_rows("8 bytes with notification, one way", "us", "ib_write_lat", times, lambda own, other: own / other)


def bandwidth(program, transport, rounds):
    for size, iterations, text in ((65536, 400, "64 KB"), (1 << 20, 40, "1 MB")):
        speeds = {"ib_write_bw": []}
        for _ in range(rounds):
            speeds["ib_write_bw"].append(perftest("ib_write_bw", transport, size, iterations, 3))  # average
            for notify in ("memory", "imm"):
                speed = put(program, notify, "stream", size, iterations)["mb_per_second"]
                speeds.setdefault(f"put, notify={notify}", []).append(speed)
        print_rows(f"stream of puts of {text}", "MB/s", "ib_write_bw", speeds, lambda own, other: own / other)


def run(program, rounds):
    transport = put(program, "imm", "put", 8, 1)["transport"]
    print(f"device {transport['device']}, GID index {transport['gid_index']}, MTU {transport['mtu']}; {rounds} rounds")
    latency(program, transport, rounds)
    bandwidth(program, transport, rounds)
