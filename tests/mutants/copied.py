# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the sources with a build tree of its own."""

import os
import re
import subprocess

from faults import SUITES

BUILD_SECONDS = 1200


def end_session(process):
    """Kills all that it started: ninja gives each of its commands a process group."""
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)


def bounded(command, seconds, folder, environment=None):
    """The exit code and the output; None: the time was over. What was started is ended with it."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                          env=environment) as started:
        try:
            output, _ = started.communicate(timeout=seconds)
            return started.returncode, output
        except subprocess.TimeoutExpired:
            end_session(started)
            return None, started.communicate()[0]
        except BaseException:
            end_session(started)
            raise


class Copy:
    """Laid out as a checkout is."""

    def __init__(self, root, folder):
        self.sources, self.build = folder, folder / "build" / "release"
        self.sources.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                                capture_output=True, text=True, check=True).stdout.split("\0")
        names = {name for name in listed if name and (root / name).is_file()}
        for name in names:
            self.write(name, (root / name).read_bytes())
            (self.sources / name).chmod((root / name).stat().st_mode)
        for path in list(self.sources.rglob("*")):
            name = path.relative_to(self.sources)
            if name.parts[0] != "build" and path.is_file() and str(name) not in names:
                path.unlink()

    def write(self, name, content):
        """Leaves what is the same alone, so that it is not built again."""
        path = self.sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)

    def configure(self):
        """One source at a time: to compile what stands beside a fault as well takes several times as long."""
        command = ["cmake", "--preset", "release", "-B", str(self.build), "-DCMAKE_UNITY_BUILD_BATCH_SIZE=1"]
        code, output = bounded(command, BUILD_SECONDS, self.sources)
        if code == 0:
            (self.build / "configured").touch()  # for tools/build_tree
        return code, output

    def make(self, suite):
        targets = SUITES[suite].targets
        if not targets:
            return 0, ""
        if not (self.build / "build.ninja").exists():
            code, output = self.configure()
            if code != 0:
                return code, output
        return bounded(["tools/build_tree", "release", str(self.build), *targets], BUILD_SECONDS, self.sources)

    def test(self, suite, tests, seconds):
        environment = {**os.environ, "build": str(self.build), "PYTHONDONTWRITEBYTECODE": "1"}
        return bounded(SUITES[suite].run(self.build / "bin", tests), seconds, self.sources, environment)

    @staticmethod
    def first_failure(code, output):
        """What failed first: a step of a virtual machine, a test of GoogleTest or of Python's unittest, one of our own
        scripts, a step of ninja, or a file that is not formatted."""
        if code is None:
            return "does not end"
        for pattern in (r"^FAILED +[\d.]+ s  (.+)", r"^\[  FAILED  \] ([^\s,]+)", r"^FAILED  +(.+)",
                        r"^FAILED: (\S+)", r"^(\S+): error: code should be clang-formatted"):
            if failed := re.search(pattern, output, re.MULTILINE):
                return failed[1]
        return "crashes"
