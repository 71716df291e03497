# SPDX-License-Identifier: BSD-3-Clause
"""tools/quickstart and tests/run on a Debian that has its base, git and g++ alone, in a folder with a space in its name: what
they say where something is missing, and that they go on from there. The tests run in the order of their names."""

import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIRROR = os.environ.get("IBCOLL_DEBIAN_MIRROR", "http://deb.debian.org/debian")
TREE = "home/user/a clone"
# Mounts are seen by the command alone: what the system has, and a folder of `size` in place of build/.
ENTER = r"""
set -e
root=$1 tree=$2 size=$3 user=$4
mount --bind "$root" "$root"  # a root that is no mount cannot be made private
mount -t proc none "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
if [ -n "$size" ]; then
  mkdir -p "$root/$tree/build"
  mount -t tmpfs -o "size=$size,mode=777" none "$root/$tree/build"
fi
cd "$root"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user LANG=C.UTF-8 \
  chroot --userspec="$user" "$root" sh -c "cd '/$tree' && $5"
"""


class BareDebian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="ibcoll_bare."))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = cls.folder / "root"
        made = subprocess.run(["mmdebstrap", "--variant=important", "--include=git,g++,ca-certificates", "bookworm", cls.root, MIRROR],
                              capture_output=True, text=True, timeout=900, check=False)
        if made.returncode:
            raise AssertionError(made.stderr[-3000:])
        for name in ("resolv.conf", "hosts"):
            shutil.copy(Path("/etc", name), cls.root / "etc" / name)
        tree = cls.root / TREE
        for name in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                                   check=True, timeout=60).stdout.splitlines():
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        cls.enter("useradd user && chown -R user: /home/user")

    @classmethod
    def enter(cls, line, user="root", network=True, size="", seconds=3000):
        """A line for a shell of the new system, in the clone."""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"]), "bash", "-c", ENTER,
                   "enter", cls.root, TREE, size, user, line]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)

    def refused(self, done, *said):
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        text = " ".join((done.stdout + done.stderr).split())
        for part in said:
            self.assertIn(part, text)

    def test_1_who_is_not_root_is_told_what_an_administrator_types(self):
        for command in ("tools/quickstart", "tests/run format"):
            with self.subTest(command=command):
                done = self.enter(command, user="user")
                self.refused(done, "neither root nor sudo is at hand; let an administrator run: apt-get install cmake ninja-build")
                self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_2_without_a_network(self):
        for command in ("tools/quickstart", "tests/run format"):
            with self.subTest(command=command):
                self.refused(self.enter(command, network=False), "apt-get failed", "is the network there")

    def test_3_a_compiler_that_is_too_old(self):
        done = self.enter("tools/install_packages build && apt-get -q -y install g++-11")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.enter("CC=gcc-11 CXX=g++-11 tools/quickstart", user="user", size="1G")
        self.refused(done, "g++-11 is GNU 11.", "and ibcoll needs 12 or later. Install it")

    def test_4_a_full_disk(self):
        done = self.enter("tools/quickstart", user="user", size="30M")
        self.refused(done, "MB are left where build/release is; a build takes 1 GB. Make room and repeat: it goes on from here.")

    def test_5_quickstart_builds_and_checks(self):
        begun = time.monotonic()
        done = self.enter("tools/quickstart", user="user")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        self.assertIn("All results are right.", done.stdout)
        # Warnings of a compiler stop a continuous integration, and nobody else.
        self.assertIn("IBCOLL_WERROR:BOOL=OFF\n", (self.root / TREE / "build/release/CMakeCache.txt").read_text())
        self.assertEqual(len(re.findall(r"# passed: \d+ rows verified, 0 errors", done.stdout)), 3, done.stdout)
        print(f"tools/quickstart took {time.monotonic() - begun:.0f} s, packages not counted")
        begun = time.monotonic()
        self.assertEqual(self.enter("tools/quickstart", user="user").returncode, 0)
        print(f"and when all was built {time.monotonic() - begun:.0f} s")

    def test_6_the_first_suites(self):
        done = self.enter("tests/run format layering runner abi", size="3G")
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        self.assertRegex(done.stdout.splitlines()[-1], r"^[1-9]\d* passed, 0 failed$")


if __name__ == "__main__":
    unittest.main()
