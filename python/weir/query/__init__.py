# SPDX-License-Identifier: Apache-2.0
"""Questions to a run: one documented schema of tables, as Arrow and in SQL. Decides what a row is;
figures are the analysis'."""

from weir.query.run import Run, Table, open_run
from weir.query.schema import TABLES

__all__ = ["TABLES", "Run", "Table", "open_run"]
