# SPDX-License-Identifier: Apache-2.0
"""Files opened through MPI-IO, and the variables of PnetCDF, netCDF and HDF5."""
