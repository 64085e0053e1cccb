# SPDX-License-Identifier: Apache-2.0
"""The declarations of layers with what only tests need of them."""

from __future__ import annotations

import importlib.util

from weir_sources import ROOT

_spec = importlib.util.spec_from_file_location("declared_layers", ROOT / "tools" / "layers.py")
declared_layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(declared_layers)
# Tables as in layer.toml, each with "name" and "tests".
DECLARED = [{"tests": {}, **layer} for layer in declared_layers.read_layers()]
