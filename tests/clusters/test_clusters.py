# SPDX-License-Identifier: BSD-3-Clause
"""The lines of docs/clusters.md as they stand: in containers, with the host file of PBS, in pods. Programs that are not
Debian's, or need daemons, have stand-ins. tests/slurm has the lines for Slurm."""

import json
import unittest

import containers
import page

PODMAN = """#!/bin/sh
case "$1 $2" in
  "exec -i") shift 2; exec enter "$@" ;;
  "run IMAGE") shift 2; exec enter c1 env -C "$PWD" "$@" ;;
  *) exit 125 ;;
esac
"""
# Containers of Apptainer have the host's network and processes; users and mounts are their own.
APPTAINER = """#!/bin/sh
[ "$1 $2" = "exec IMAGE" ] || exit 125
shift 2
exec unshare --user --map-root-user --mount "$@"
"""
KUBECTL = """#!/bin/sh
[ "$1 $2 $4" = "exec -i --" ] || exit 1
pod=$3
shift 4
exec ssh "$pod" "$@"
"""
QSUB = """#!/bin/sh
printf 'c1\\nc1\\nc2\\nc2\\n' >nodes
for job; do :; done
PBS_NODEFILE=$PWD/nodes exec enter c1 env PBS_NODEFILE=$PWD/nodes sh -c "cd $PWD && exec sh $job"
"""


@unittest.skipIf(containers.missing(), containers.missing())
class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = containers.Containers()
        cls.addClassCleanup(cls.bed.close)
        for name, text in (("podman", PODMAN), ("apptainer", APPTAINER), ("kubectl", KUBECTL), ("qsub", QSUB)):
            cls.bed.stand_in(name, text)
        page.make_sum(cls.bed.folder)
        (cls.bed.folder / "hostfile").write_text("c1 slots=2\nc2 slots=2\n")

    def run_line(self, line, inside=""):
        return self.bed.run(f"cd {self.bed.folder} && {line}", page.BUILD / "bin", inside)

    def assert_sums(self, line, inside=""):
        done = self.run_line(line, inside)
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, page.sums(4)), done.stderr)

    def nodes(self, line, inside=""):
        """How many nodes the job of a line has."""
        self.assertIn("./sum", line)
        done = self.run_line(line.replace("./sum", f"{page.BUILD}/bin/ibcoll_info --json"), inside)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["topology"]["nodes"]

    def test_containers(self):
        one, both, apptainer = page.lines("Containers")
        for line, nodes in ((one, 1), (both, 2), (apptainer, 1)):
            with self.subTest(line=line):
                self.assert_sums(line)
                self.assertEqual(self.nodes(line), nodes)

    def test_a_container_for_each_rank(self):
        """Each is a node, and the results are right."""
        line = "ibcoll_run -n 4 apptainer exec IMAGE ./sum"
        self.assert_sums(line)
        self.assertEqual(self.nodes(line), 4)

    def test_pbs(self):
        submit, *job = page.lines("PBS, LSF, host lists")
        (self.bed.folder / "job").write_text("#!/bin/sh\n" + job[0] + "\n")
        self.assert_sums(submit)
        self.assert_sums(job[1], inside="c1")
        self.assertEqual(self.nodes(job[1], inside="c1"), 2)

    def test_kubernetes(self):
        by_ssh, make_agent, by_kubectl = page.lines("Kubernetes")
        for line in (by_ssh, f"{make_agent}; {by_kubectl}"):
            with self.subTest(line=line):
                self.assertIn("/etc/mpi/hostfile", line)
                self.assert_sums(line.replace("/etc/mpi/hostfile", "hostfile"), inside="c1")


if __name__ == "__main__":
    unittest.main()
