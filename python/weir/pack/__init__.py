# SPDX-License-Identifier: Apache-2.0
"""Containers of the layer pack: ZIP archives that hold many small files. Form:
docs/formats/pack.md."""

from weir.pack.archive import Container, Record
from weir.pack.change import extract, merge, repair
from weir.pack.check import Problem, verify

__all__ = ["Container", "Problem", "Record", "extract", "merge", "repair", "verify"]
