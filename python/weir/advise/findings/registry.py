# SPDX-License-Identifier: Apache-2.0
"""All findings with a cure. Of two that are worth the same, the first one comes first."""

from __future__ import annotations

from weir.advise.frame.finding import Finding
from weir.advise.findings.aggregators.finding import AGGREGATORS
from weir.advise.findings.carried.finding import CARRIED_FILES
from weir.advise.findings.definitions.finding import DEFINITIONS
from weir.advise.findings.fortran_units.finding import FORTRAN_UNITS
from weir.advise.findings.frequent_fsync.finding import FREQUENT_FSYNC
from weir.advise.findings.harmful_layer.finding import HARMFUL_LAYER
from weir.advise.findings.header_rewrites.finding import HEADER_REWRITES
from weir.advise.findings.independent_mpi_io.finding import INDEPENDENT_MPI_IO
from weir.advise.findings.interleaved_writes.finding import INTERLEAVED_WRITES
from weir.advise.findings.io_servers.finding import IO_SERVERS
from weir.advise.findings.late_definitions.finding import LATE_DEFINITIONS
from weir.advise.findings.lock_step_creates.finding import LOCK_STEP_CREATES
from weir.advise.findings.many_files.finding import MANY_FILES
from weir.advise.findings.node_interleaving.finding import NODE_INTERLEAVING
from weir.advise.findings.one_binary.finding import ONE_BINARY
from weir.advise.findings.read_again.finding import READ_AGAIN
from weir.advise.findings.reopened.finding import REOPENED
from weir.advise.findings.same_bytes.finding import SAME_BYTES
from weir.advise.findings.serial_io.finding import SERIAL_IO
from weir.advise.findings.rewritten_files.finding import REWRITTEN_FILES
from weir.advise.findings.small_requests.finding import SMALL_REQUESTS
from weir.advise.findings.stripes.finding import STRIPES
from weir.advise.findings.too_many_cores.finding import TOO_MANY_CORES
from weir.advise.findings.unaligned.finding import UNALIGNED
from weir.advise.findings.uneven_io.finding import UNEVEN_IO
from weir.advise.findings.waited_output.finding import WAITED_OUTPUT
from weir.advise.findings.written_again.finding import WRITTEN_AGAIN

FINDINGS: tuple[Finding, ...] = (
    HARMFUL_LAYER,
    SAME_BYTES,
    READ_AGAIN,
    SMALL_REQUESTS,
    FORTRAN_UNITS,
    INTERLEAVED_WRITES,
    INDEPENDENT_MPI_IO,
    AGGREGATORS,
    STRIPES,
    WRITTEN_AGAIN,
    LATE_DEFINITIONS,
    HEADER_REWRITES,
    MANY_FILES,
    LOCK_STEP_CREATES,
    REOPENED,
    CARRIED_FILES,
    WAITED_OUTPUT,
    IO_SERVERS,
    FREQUENT_FSYNC,
    SERIAL_IO,
    UNEVEN_IO,
    NODE_INTERLEAVING,
    UNALIGNED,
    DEFINITIONS,
    ONE_BINARY,
    TOO_MANY_CORES,
    REWRITTEN_FILES,
)
BY_NAME = {one.name: one for one in FINDINGS}
