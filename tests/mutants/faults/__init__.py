# SPDX-License-Identifier: BSD-3-Clause
"""Small faults of every layer."""

from . import (base, collectives, comm, compare, engine, interface, launcher, networks, perf, shm_and_sim, sources,
               tools)
from .fault import SUITES

FAULTS = [fault for layer in (base, comm, collectives, engine, shm_and_sim, networks, interface, launcher, perf, tools,
                              compare, sources)
          for fault in layer.FAULTS]
__all__ = ["FAULTS", "SUITES"]
