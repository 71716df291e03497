# SPDX-License-Identifier: BSD-3-Clause
"""Times of whole programs on Open MPI alone and with ibcoll's component, alternately: HPCC, FFTW and LAMMPS of Debian, and
FT of perf/apps. Prints the median of all rounds in ms, with the range: of what the program itself measures, and of the
time in blocking collectives (mean of the ranks, in the whole run; collective_times.c).

  python3 tests/under_mpi/time_packages.py [RANKS [ROUNDS]]     default 2 ranks, 3 rounds: 1 to 2 minutes

Needs `tools/install_packages packages peers` and a build. When it is interrupted, it prints the rounds that it has."""

import csv
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[2] / folder) for folder in ("perf/peers", "tools/tables")]
import launch  # pylint: disable=wrong-import-position
import test_packages  # pylint: disable=wrong-import-position
import test_pmpi  # pylint: disable=wrong-import-position

RANKS, ROUNDS = (int(word) for word in (sys.argv[1:] + ["2", "3"][len(sys.argv) - 1:]))
ALONE, IBCOLL = ["mpirun.openmpi"], [str(word) for word in test_packages.Component.launcher]
SOURCES = Path(__file__).resolve().parent


def run(words, folder):
    return launch.text_of(words, 300, env={**os.environ, **test_packages.ENVIRONMENT}, cwd=folder)


class Programs:
    """Each function runs a program by the words of a launcher, and returns {what: seconds}."""

    def __init__(self, folder):
        self.folder = folder
        text = test_packages.HPCC.read_text()
        for line in ("Ps", "Qs"):
            text = re.sub(rf"(?m)^\d+( +{line})$", rf"{RANKS if line == 'Qs' else 1}\1", text)
        (folder / "hpccinf.txt").write_text(text)
        shutil.copy(test_packages.LAMMPS / "min" / "in.min", folder)
        run(["mpicc.openmpi", "-O1", SOURCES / "fftw_program.c", "-o", "fft", "-lfftw3_mpi", "-lfftw3", "-lm"], folder)
        run(["mpicc.openmpi", "-O1", "-shared", "-fPIC", SOURCES / "collective_times.c", "-o", "collective_times.so"], folder)

    def ranks(self, launcher, *program):
        """What the program prints, and {"collectives": seconds}."""
        said = run([*launcher, "-n", RANKS, "-x", f"LD_PRELOAD={self.folder}/collective_times.so", *program], self.folder)
        return said, {"collectives": float(re.search(r"(?m)^seconds in collectives: (\S+)$", said)[1])}

    def hpcc(self, launcher):
        result = self.folder / "hpccoutf.txt"
        result.unlink(missing_ok=True)
        _, times = self.ranks(launcher, "hpcc")
        said = result.read_text()
        return {**{key: float(re.search(rf"(?m)^{key}=(\S+)$", said)[1])
                   for key in ("HPL_time", "MPIRandomAccess_time", "PTRANS_time")}, **times}

    def fftw(self, launcher):
        """Cubes of 64 points a side, there and back, 50 times."""
        said, times = self.ranks(launcher, self.folder / "fft", 64, 50)
        return {"transforms": float(re.search(r"(?m)^seconds: (\S+)", said)[1]), **times}

    def lammps(self, launcher):
        said, times = self.ranks(launcher, "lmp", "-log", "none", "-in", "in.min")
        return {"loops": sum(map(float, re.findall(r"Loop time of (\S+)", said))), **times}

    def ft(self, launcher):
        """It times its collectives itself."""
        said = run([*launcher, "-n", RANKS, test_pmpi.BIN / "ft_openmpi", "--class", "W", "--csv"], self.folder)
        rows = list(csv.DictReader(said[said.index("collective,"):].splitlines()))
        return {"in total": float(rows[0]["total_us"]) / 1e6,
                "collectives": sum(float(row["in_calls_us"]) for row in rows) / 1e6}


def show(seen):
    print("| program | Open MPI alone | with ibcoll | ratio |\n|---|--:|--:|--:|")
    for key, both in seen.items():
        if min(map(len, both)) > 0:
            medians = [statistics.median(times) for times in both]
            texts = [f"{middle * 1000:.3g} ({min(times) * 1000:.3g}..{max(times) * 1000:.3g})"
                     for middle, times in zip(medians, both)]
            print(f"| {key} | {texts[0]} | {texts[1]} | {medians[0] / medians[1]:.2f} |")


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    seen = {}
    with tempfile.TemporaryDirectory() as name:
        programs = Programs(Path(name))
        try:
            for number in range(ROUNDS):
                for program in (programs.hpcc, programs.fftw, programs.lammps, programs.ft):
                    for index, launcher in list(enumerate((ALONE, IBCOLL)))[::(-1) ** number]:
                        for what, seconds in program(launcher).items():
                            seen.setdefault(f"{program.__name__}, {what}", ([], []))[index].append(seconds)
        except KeyboardInterrupt:
            sys.exit(130)
        finally:
            show(seen)


if __name__ == "__main__":
    try:
        main()
    except launch.CompareError as problem:
        sys.exit(f"time_packages: {problem}")
