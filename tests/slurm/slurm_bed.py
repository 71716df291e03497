# SPDX-License-Identifier: BSD-3-Clause
"""Slurm of two nodes on this machine: munged, slurmctld and a slurmd on each node of perf/cluster. All files are in a
folder of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLUSTER, AGENT = ROOT / "perf/cluster", ROOT / "perf/peers/on_cluster_node"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc")

CONFIGURATION = """
ClusterName=ibcoll
SlurmctldHost=n1(10.200.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
TmpFS={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
NodeName=n1 NodeAddr=10.200.0.1 CPUs=8 State=UNKNOWN
NodeName=n2 NodeAddr=10.200.0.2 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
"""


def missing():
    """What keeps a bed from being made; empty: nothing."""
    programs = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    return "Slurm is not installed" if programs else "" if os.geteuid() == 0 else "not root"


class Bed:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ibcoll_slurm_"))
        self.environment = {**os.environ, "PERF_CLUSTER": f"slurm{os.getpid()}", "PYTHONDONTWRITEBYTECODE": "1",
                            "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = []

    def start(self):
        for folder in ("state", "n1", "n2"):
            (self.folder / folder).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(folder=self.folder))
        # A node's /sys has no cgroups. Nothing here uses them, but slurmd looks for their version.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        self.cluster("up", "2")
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                    *(f"--{name}-file={self.folder}/munged.{name}" for name in ("pid", "log", "seed")))
        self.wait_for((self.folder / "munge.socket").exists, "munged")
        for node, *words in (("n1", "slurmctld", "-D", "-c"), ("n1", "slurmd", "-D"), ("n2", "slurmd", "-D")):
            self.daemon(CLUSTER, "exec", node, *words)
        self.wait_for(lambda: self.run("sinfo", "-h", "-o", "%D %t").stdout.split() == ["2", "idle"], "two idle nodes")

    def cluster(self, *words):
        done = subprocess.run([CLUSTER, *words], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)

    def daemon(self, *words):
        self.daemons.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError(f"no {what}\n" + "\n".join(self.logs()))
            time.sleep(0.1)

    def logs(self):
        for log in sorted(self.folder.rglob("*.log")):
            yield f"{log}:\n{log.read_text(errors='replace')[-3000:]}"

    def run(self, *words, **variables):
        """A command on the node n1, where users are logged in."""
        return subprocess.run([CLUSTER, "exec", "n1", *map(str, words)], env={**self.environment, **variables},
                              cwd=self.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              check=False)

    def stop(self):
        try:
            self.cluster("down")  # with all that runs on the nodes
        finally:
            for daemon in self.daemons:
                daemon.kill()
                daemon.wait()
            shutil.rmtree(self.folder)
