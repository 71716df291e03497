# SPDX-License-Identifier: BSD-3-Clause
"""Small faults of every layer."""

from . import base, collectives, comm, engine, interface, launcher, networks, perf, shm_and_sim
from .fault import SUITES

FAULTS = [fault for layer in (base, comm, collectives, engine, shm_and_sim, networks, interface, launcher, perf)
          for fault in layer.FAULTS]
__all__ = ["FAULTS", "SUITES"]
