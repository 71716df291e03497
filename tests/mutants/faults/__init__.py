# SPDX-License-Identifier: BSD-3-Clause
"""Small faults of every layer: each module of this folder has some in FAULTS."""

import importlib
import pkgutil

from .fault import SUITES

LAYERS = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
FAULTS = [fault for layer in LAYERS for fault in getattr(layer, "FAULTS", ())]
__all__ = ["FAULTS", "SUITES"]
