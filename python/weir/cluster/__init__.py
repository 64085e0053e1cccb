# SPDX-License-Identifier: Apache-2.0
"""Runs read by the workers of a Dask cluster: each sees the trace files and gives back what is
small. Needs `weir-io[dask]`."""

from weir.cluster.cluster import Cluster, ClusterError
from weir.cluster.connect import connect

__all__ = ["Cluster", "ClusterError", "connect"]
