# SPDX-License-Identifier: BSD-3-Clause
"""How perf/cluster makes nodes and their links, and how it removes them again."""

import json
import os
import shutil
import socket
import time

import cluster_nodes
import cluster_processes
import launch
from cluster_nodes import ClusterError, address, node_names, run

BITS = {"kbit": 10 ** 3, "mbit": 10 ** 6, "gbit": 10 ** 9}
LEAST_BURST = 16384  # bytes: with less, tbf would cut the packets of 64 KB that TCP hands it into many
QUEUE = "50ms"  # what a link holds back before it drops


def lock(nodes):
    """Held until this process and the command that it runs end; nothing is left of it. Two at once would each see half
    of what the other one does."""
    held = socket.socket(socket.AF_UNIX)
    held.set_inheritable(True)
    end = time.monotonic() + cluster_nodes.TIMEOUT_OF_ALL / 2
    while True:
        try:
            held.bind(f"\0ibcoll-cluster-{nodes.name}")
            return held
        except OSError:
            if time.monotonic() > end:
                raise ClusterError("another perf/cluster up or down has been at work for too long; end it and try "
                                   "again") from None
        time.sleep(0.05)


def bits_per_second(rate):
    """Of "1gbit"; 0 where that is no rate."""
    number, unit = rate[:-4], rate[-4:]
    well = number.replace(".", "", 1).isdecimal() and number[0] != "." and unit in BITS
    return float(number) * BITS[unit] if well else 0


def shape(namespace, link, rate):
    """tbf sends at most a burst at full speed: 1 ms of the rate, as its timers need some time of their own."""
    burst = max(LEAST_BURST, int(bits_per_second(rate) / 8 / 1000))
    run("tc", "-n", namespace, "qdisc", "add", "dev", link, "root", "tbf", "rate", rate, "burst", f"{burst}b",
        "latency", QUEUE)


def await_running(namespace, link):
    """The kernel says a while after "up" that a device runs; UCX takes none that does not."""
    end = time.monotonic() + 60
    while " state UP " not in run("ip", "-n", namespace, "link", "show", link):
        if time.monotonic() > end:
            raise ClusterError(f"{link} of {namespace} is not up after 60 s; is the machine overloaded?")
        time.sleep(0.01)


def make_node(nodes, node, rate):
    namespace = nodes.namespace(node)
    run("ip", "netns", "add", namespace)
    run("ip", "link", "add", "eth0", "netns", namespace, "type", "veth", "peer", "name", node, "netns", nodes.switch)
    run("ip", "-n", nodes.switch, "link", "set", node, "master", "switch", "up")
    run("ip", "-n", namespace, "address", "add", f"{address(node)}/24", "dev", "eth0")
    run("ip", "-n", namespace, "link", "set", "eth0", "up")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    await_running(namespace, "eth0")
    shape(namespace, "eth0", rate)  # what the node sends
    shape(nodes.switch, node, rate)  # what it receives
    for folder in ("shm", "tmp"):
        (nodes.folder / node / folder).mkdir(parents=True)
    run("mount", "-t", "tmpfs", "-o", "mode=1777", namespace, str(nodes.folder / node / "shm"))


def plan(count, rate, all_cpus):
    """What Nodes.state() will say of such a cluster."""
    shares = [] if all_cpus else launch.cpu_shares(count)
    return {"nodes": count, "rate": rate, "cpus": [",".join(map(str, share)) for share in shares] or [""] * count}


def make(nodes, wanted):
    """Makes all nodes of a plan, or none: what is left of a cluster that was not finished goes first."""
    remove(nodes)
    try:
        nodes.folder.mkdir(parents=True)
        run("ip", "netns", "add", nodes.switch)
        run("ip", "-n", nodes.switch, "link", "add", "switch", "type", "bridge")
        run("ip", "-n", nodes.switch, "link", "set", "switch", "up")
        names = node_names(wanted["nodes"])
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address(node)} {node}\n" for node in names)
        (nodes.folder / "hosts").write_text(hosts, encoding="utf-8")
        for node in names:
            make_node(nodes, node, wanted["rate"])
        (nodes.folder / "state.json").write_text(json.dumps(wanted), encoding="utf-8")
    except BaseException:
        remove(nodes)
        raise


def remove(nodes):
    """Kills what runs on the nodes and removes them, also where they are only a part of a cluster, or none."""
    namespaces = nodes.namespaces()
    if cluster_processes.own_is_among(namespaces):
        raise ClusterError("this process is on one of the nodes; call perf/cluster from outside")
    (nodes.folder / "state.json").unlink(missing_ok=True)  # from here on it is no cluster any more
    cluster_processes.kill_all(namespaces)
    for folder in sorted(nodes.folder.glob("n*/shm")):
        if os.path.ismount(folder):
            run("umount", "--lazy", str(folder))
    for namespace in namespaces:
        run("ip", "netns", "delete", namespace)
    if nodes.folder.exists():
        shutil.rmtree(nodes.folder)
    if cluster_nodes.ROOT_FOLDER.exists() and not any(cluster_nodes.ROOT_FOLDER.iterdir()):
        cluster_nodes.ROOT_FOLDER.rmdir()
