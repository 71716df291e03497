# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: built from a copy of the tree, looked at by lintian, and installed into an empty Debian. There the
commands of docs/first_program.md and docs/mpi.md run as they stand."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("libibcoll0", "libibcoll-dev", "ibcoll-tools", "ibcoll-openmpi", "ibcoll-mpich", "ibcoll-doc")
# A program as docs/mpi.md means it: it knows nothing of ibcoll.
MPI_PROGRAM = """#include <mpi.h>
int main(int argc, char** argv) {
  int one = 1, sum = 0, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum != size;
}
"""


def run(*words, seconds=2500, **others):
    """What the command and all that it started have said; they end together."""
    return subprocess.run(["timeout", str(seconds), *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **others)


def section(page, heading):
    """The text below a heading of a page."""
    text = (ROOT / "docs" / page).read_text()
    return re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def commands(text):
    """The indented lines that a reader types. Lines after a prompt are their output; continued lines are joined."""
    lines = re.sub(r"```.*?```", "", text, flags=re.S).replace("\\\n", " ").splitlines()
    typed = [line[4:].split("  #")[0] for line in lines if line.startswith("    ")]
    prompts = [line[2:] for line in typed if line.startswith("$ ")]
    return prompts or typed


def file_of(page, heading, language):
    return re.search(rf"```{language}\n(.*?)```", section(page, heading), re.S)[1]


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="ibcoll_packages."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        tree = cls.folder / "ibcoll"
        names = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).stdout.splitlines()
        for name in names:
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        cache = run("ccache", "-k", "cache_dir").stdout.strip() if shutil.which("ccache") else ""
        built = run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=tree,
                    env={**os.environ, "DEB_BUILD_OPTIONS": f"parallel={os.cpu_count()}", "CCACHE_DIR": cache})
        if built.returncode:
            raise AssertionError("dpkg-buildpackage failed:\n" + "\n".join(built.stdout.splitlines()[-60:]))
        cls.files = {file.name.split("_")[0]: file for file in cls.folder.glob("*.deb")}

    def test_there_are_six_packages(self):
        self.assertLessEqual(set(PACKAGES), set(self.files))
        for name in PACKAGES:
            print(f"{name}: {self.files[name].stat().st_size / 1024:.0f} KB")

    def test_lintian_finds_nothing(self):
        changes = next(self.folder.glob("*.changes"))
        done = run("lintian", "--allow-root", "--pedantic", "--fail-on", "error,warning,pedantic", changes)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_manual_pages_are_well_formed(self):
        for name in ("libibcoll-dev", "ibcoll-tools"):
            out = self.folder / f"{name}.unpacked"
            run("dpkg-deb", "-x", self.files[name], out)
            run("gzip", "-dr", out / "usr/share/man")
            pages = sorted(page for page in out.glob("usr/share/man/man*/*.[137]") if not page.is_symlink())
            self.assertGreater(len(pages), 5)
            done = run("mandoc", "-Tlint", "-W", "error", *pages)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_modules_only_recommend_their_libraries(self):
        fields = {field: run("dpkg-deb", "-f", self.files["libibcoll0"], field).stdout
                  for field in ("Depends", "Recommends")}
        for library in ("libucx0", "libibverbs1", "libpmix2"):
            self.assertIn(library, fields["Recommends"])
            self.assertNotIn(library, fields["Depends"])

    def test_tools_read_otf2(self):
        self.assertIn("libopen-trace-format2-", run("dpkg-deb", "-f", self.files["ibcoll-tools"], "Depends").stdout)

    def test_in_an_empty_debian(self):
        mirror = os.environ.get("IBCOLL_DEBIAN_MIRROR", "http://deb.debian.org/debian")
        script = ["set -eux", "cd", "export OMPI_MCA_rmaps_base_oversubscribe=1",
                  f"cat >sum.c <<'E'\n{file_of('first_program.md', 'Write', 'c')}E",
                  f"cat >CMakeLists.txt <<'E'\n{file_of('first_program.md', 'Build', 'cmake')}E",
                  *commands(section("first_program.md", "Build")), *commands(section("first_program.md", "Run")),
                  "./build/sum",
                  f"cat >mpi_sum.c <<'E'\n{file_of('first_program.md', 'In an MPI program', 'c')}E"]
        calling = commands(section("first_program.md", "In an MPI program"))
        script += calling + [line.replace("openmpi", "mpich") for line in calling]
        script += [f"cat >program.c <<'E'\n{MPI_PROGRAM}E", "mpicc.openmpi program.c -o program",
                   "export IBCOLL_MPI_VERBOSE=1"]
        page = (ROOT / "docs/mpi.md").read_text().split("\n## ")[0]
        script += [line for line in commands(page) if re.match(r"ibcoll_mpi(?!.*(srun|python3))", line)]
        script += ["mpicc.mpich program.c -o program", "ibcoll_mpi mpirun.mpich -n 2 ./program",
                   "man ibcoll_run >/dev/null", "man ibcoll_allreduce | grep -q ibcoll_last_error", "echo all of it ran"]
        inside = self.folder / "inside"
        inside.mkdir()
        (inside / "user.sh").write_text("\n".join(script) + "\n")
        for name in PACKAGES:
            shutil.copy2(self.files[name], inside)
        (inside / "root.sh").write_text(
            "set -eux\nexport DEBIAN_FRONTEND=noninteractive\n"
            "apt-get install -y -q /inside/*.deb gcc libc6-dev pkg-config cmake make man-db \\\n"
            "  openmpi-bin libopenmpi-dev mpich libmpich-dev\n"
            "update-alternatives --set mpirun /usr/bin/mpirun.openmpi\n"
            "useradd -m user\nsu user -c 'bash /inside/user.sh'\n")
        done = run("mmdebstrap", "--variant=apt", f"--customize-hook=cp -r '{inside}' \"$1/inside\"",
                   "--customize-hook=chroot \"$1\" bash /inside/root.sh", "bookworm", "/dev/null", mirror)
        self.assertIn("all of it ran", done.stdout.splitlines(), "\n".join(done.stdout.splitlines()[-60:]))
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        self.assertRegex(done.stdout, r"allreduce 20 calls, 80 bytes, 20 in ibcoll")
