# SPDX-License-Identifier: Apache-2.0
"""Runs as files of other tools: Parquet, CSV, Perfetto's traces, totals in the words of Darshan.
Figures are those of the tables."""

from weir.export.files import export_csv, export_parquet
from weir.export.perfetto import export_perfetto
from weir.export.totals import export_totals

__all__ = ["export_csv", "export_parquet", "export_perfetto", "export_totals"]
