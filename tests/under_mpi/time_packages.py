# SPDX-License-Identifier: BSD-3-Clause
"""Times of programs of Debian's packages on Open MPI alone and with ibcoll's component, in turn; medians of ROUNDS, and the range.

`python3 tests/under_mpi/time_packages.py [RANKS [ROUNDS]]`, after `tools/install_packages packages` and a build."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import test_packages

RANKS, ROUNDS = (int(word) for word in (sys.argv[1:] + ["2", "3"][len(sys.argv) - 1:]))
ALONE, IBCOLL = ["mpirun.openmpi"], [str(word) for word in test_packages.Component.launcher]


def run(words, folder):
    return subprocess.run([str(word) for word in words], env={**os.environ, **test_packages.ENVIRONMENT}, cwd=folder, check=True,
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL).stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = test_packages.HPCC.read_text()
        for line in ("Ps", "Qs"):
            text = re.sub(rf"(?m)^\d+( +{line})$", rf"{RANKS if line == 'Qs' else 1}\1", text)
        (folder / "hpccinf.txt").write_text(text)
        shutil.copy(test_packages.LAMMPS / "min" / "in.min", folder)
        run(["mpicc.openmpi", "-O1", Path(__file__).with_name("fftw_program.c").resolve(), "-o", "fft", "-lfftw3_mpi", "-lfftw3",
             "-lm"], folder)

        def hpcc(launcher):
            (folder / "hpccoutf.txt").unlink(missing_ok=True)
            run([*launcher, "-n", RANKS, "hpcc"], folder)
            said = (folder / "hpccoutf.txt").read_text()
            return {f"hpcc {key}": float(re.search(rf"(?m)^{key}=(\S+)$", said)[1])
                    for key in ("HPL_time", "MPIRandomAccess_time", "PTRANS_time")}

        def fftw(launcher):
            said = run([*launcher, "-n", RANKS, folder / "fft", 64, 50], folder)
            return {"FFTW, 64^3 there and back, 50 times": float(re.search(r"seconds: (\S+)", said)[1])}

        def lammps(launcher):
            said = run([*launcher, "-n", RANKS, "lmp", "-log", "none", "-in", "in.min"], folder)
            return {"LAMMPS, in.min": sum(map(float, re.findall(r"Loop time of (\S+)", said)))}
        seen = {}
        for _ in range(ROUNDS):
            for program in (hpcc, fftw, lammps):
                for index, launcher in enumerate((ALONE, IBCOLL)):
                    for key, seconds in program(launcher).items():
                        seen.setdefault(key, ([], []))[index].append(seconds)
        for key, times in seen.items():
            alone, ours = (statistics.median(one) for one in times)
            spread = [f"{min(one) * 1000:.3g}..{max(one) * 1000:.3g}" for one in times]
            print(f"| {key} | {alone * 1000:.3g} ({spread[0]}) | {ours * 1000:.3g} ({spread[1]}) | {alone / ours:.2f} |")


main()
