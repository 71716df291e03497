# SPDX-License-Identifier: BSD-3-Clause
"""What one TCP connection does between two nodes of perf/cluster, for perf/compare to print beside the libraries."""

import statistics
import subprocess

import cluster_nodes
import launch

TIMEOUT = 30  # seconds, for one measurement


def measure(nodes, build, seconds):
    """(us of a round trip of 8 bytes, Mbit/s of a stream) between n1 and n2."""
    program = build / "bin/ibcoll_tcp_stream"
    if not program.exists():
        raise launch.CompareError(f"{program} does not exist; build it: cmake --build {build} --target "
                                  f"ibcoll_tcp_stream")
    address = cluster_nodes.address("n2")
    with subprocess.Popen(nodes.enter("n2", [program, address]), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as server:
        try:
            # It prints the port at once, or ends: then the client says why there is no port.
            port = server.stdout.readline().strip()
            words = nodes.enter("n1", [program, address, port or "0", seconds])
            done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if not port or done.returncode != 0:
                server.kill()
                said = server.stderr.read() + done.stderr
                raise launch.CompareError(f"the raw TCP stream from n1 to n2 failed: {said}")
            trip, stream = done.stdout.split()
            return float(trip), float(stream)
        except subprocess.TimeoutExpired:
            raise launch.CompareError(f"the raw TCP stream from n1 to n2 was not done after {TIMEOUT} s") from None
        finally:
            server.kill()


def line(measured):
    """One line of what `measured` has, one pair for each round."""
    trips, streams = zip(*measured)
    return (f"raw TCP from n1 to n2, {len(measured)} times in between: {statistics.median(streams):.0f} Mbit/s "
            f"({min(streams):.0f}..{max(streams):.0f}); round trip of 8 bytes {statistics.median(trips):.0f} us "
            f"({min(trips):.0f}..{max(trips):.0f})")
