# SPDX-License-Identifier: Apache-2.0
"""Variables of PnetCDF, netCDF and HDF5 by time."""

from __future__ import annotations

from weir.report.frame.declared import Field, declared_table
from weir.report.mpi_io.variables import all_variables

VARIABLES = declared_table(
    name="variables",
    heading="Variables",
    shows="variables of PnetCDF, netCDF and HDF5: puts, gets, time",
    why_empty="no variable was read or written through PnetCDF, netCDF or HDF5",
    fields=[
        Field("step", "text", "", "name of the step"),
        Field("variable", "text", "", "name of the variable", "Variable", is_key=True),
        Field("library", "text", "", "pnetcdf, netcdf, hdf5", "library"),
        Field("ranks", "int", "", "ranks that used it", "ranks"),
        Field("puts", "int", "", "calls that write it", "puts", "written"),
        Field("put_bytes", "int", "bytes", "of the program's buffers", "MB", "written"),
        Field("put_ns", "int", "ns", "in these calls, of all ranks", "s", "written", key="put_ns"),
        Field("gets", "int", "", "calls that read it", "gets", "read"),
        Field("get_bytes", "int", "bytes", "of the program's buffers", "MB", "read"),
        Field("get_ns", "int", "ns", "in these calls, of all ranks", "s", "read", key="get_ns"),
        Field("busiest_ns", "int", "ns", "of the rank that spent most", "busiest", "s",
              key="busiest_ns"),
        Field("file", "path", "", "path of the file", "File"),
    ],
    rows=all_variables,
)
