# SPDX-License-Identifier: Apache-2.0
"""The tables that can be asked, and every column of them: name, kind, unit, meaning.
docs/reference/query.md is this in prose.

Tables are only ever added to: a column neither changes its meaning nor goes.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.report.frame.declared import Field
from weir.report.registry import KINDS as REPORT_TABLES
from weir.trace.ops import PARTS

@dataclass(frozen=True)
class TableSchema:
    """One table. sql: its definition where it is a view of other tables."""

    name: str
    meaning: str
    columns: tuple[Field, ...]
    sql: str = ""


def _columns(text: str) -> tuple[Field, ...]:
    """Columns of lines `name kind unit: meaning`; the unit may be missing. A backslash at the end
    of a line continues the meaning."""
    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, meaning = " ".join(line.split()).split(": ", 1)
        name, kind, *unit = head.split()
        made.append(Field(name, kind, unit[0] if unit else "", meaning))
    return tuple(made)


_WHO = """
    step text: name of the step
    node text: name of the node
    pid int32: process id on the node
    rank int32: rank of the process in its program, -1: it has none; 0 for all where nothing in \
        the step is parallel
"""
_LABEL = """
    rank_label text: what tables print of the rank: model:0 where several programs of the step \
        have ranks; of a process without one its program
"""
_WHAT = """
    op text: operation, as in docs/reference/operations.md
    layer text: who recorded it: posix, stdio, fortran, mpi, ...; event0, ...: an event layer of \
        a stack; note:KIND: a note about a layer
    class text: read, write, open, close, other (any other I/O), none (no I/O of its own)
"""
_HOW = """
    below bool: made by a language's library for the program's own call, so no call of the program
    nested bool: its time lies within another record of the thread
    of_output bool: made by libweir, within one of its events
    launcher bool: the process is a launcher (mpirun, srun, ...), which reports leave out
"""
_SIZES = """
    length_bytes int? bytes: length that a call without data names: of mmap, ftruncate, \
        fallocate, MPI_File_set_size, ...; null: another call, or it failed
    filetype_bytes int? bytes: data in one file type, of MPI_File_set_view; null: another call, \
        or it failed
    statistic int?: of a note about a layer (layer note:KIND): the figure, in the unit of its \
        layer.toml
"""
_FILE = """
    file text?: absolute name, or what else the record is about (pipe:[..], output:STREAM:WHAT, \
        mpi:COMMUNICATOR); null: nothing
    is_file bool: the name is that of a file, or is not known; pipes, sockets, devices, memory of \
        memfd_create, /proc, /sys and segments of MPI are none
"""

_EXCLUDED = """
    excluded bool: the file is one of the system, or another one that reports leave out
"""

_COUNTED = "class <> 'none' AND layer IN ('posix', 'stdio', 'fortran', 'mpi') AND is_file "
_COUNTED += "AND NOT excluded AND NOT launcher"
_PARTS = ", ".join(f"'{name}'" for name in PARTS)
_HAS_OWN_TIME = f"layer <> 'fortran' AND (NOT nested OR below AND op NOT IN ({_PARTS}))"
_SYSTEM = "layer IN ('posix', 'stdio')"

EVENTS = TableSchema(
    "events",
    "one row for each record: a call, or an event of a library. At level trace only; in no "
    "particular order",
    _columns(f"""
        {_WHO}
        thread int32: thread of the call, its number in the system
        start_ns int ns: when the call began, since 1970, on the clock that the nodes share
        duration_ns int ns: how long it took: end less start, each rounded down. The sum of some \
        events differs by less than 1 ns for each of them from `ns` of totals, files and JSON, \
        which are rounded once for each of their rows
        {_WHAT}
        {_FILE}
        offset_bytes int? bytes: where the transfer began; null: not known
        bytes int bytes: data that the call moved: transferred, of posix and stdio; of the layers \
            above the data that it was called for; 0 when it moves none, or failed
        unit int?: unit of a Fortran statement
        error int32?: errno of a call that failed (of MPI-IO: MPI's class of errors), null: it \
            did not
        routine text?: routine of MPI in records of synchronisation and messages, whose file is \
            the communicator
        sequence int?: of a collective: its number on the communicator
        peer int32?: of a message: the other rank in MPI_COMM_WORLD; null: not known
        short bool: fewer bytes than were asked for
        {_HOW}
        {_SIZES}
        {_EXCLUDED}
        {_LABEL}
    """),
)
TOTALS = TableSchema(
    "totals",
    "all calls of one process, file, operation, layer and flags added up, at every level; what "
    "`weir report` is computed from",
    _columns(f"""
        {_WHO}
        {_WHAT}
        {_FILE}
        calls int: records, failed ones too
        bytes int bytes: as in events; 0 for records of synchronisation and messages of MPI
        ns int ns: their durations added up
        errors int: how many failed
        first_ns int ns: when the first began, since 1970
        last_ns int ns: when the last ended, since 1970
        {_HOW}
        last_file text?: the name that the file had last in the run: another one than file where \
            it was renamed or reached by a link
        {_SIZES}
        {_EXCLUDED}
        {_LABEL}
    """),
)
IO = TableSchema(
    "io",
    "the events that `weir report` counts, as it counts them: sums of calls, bytes and ns are its "
    "figures. Rows of events with any I/O, of the layers posix, stdio, fortran and mpi, on files "
    "that are not excluded, and not of launchers",
    _columns(f"""
        {_WHO}
        thread int32: thread of the call
        start_ns int ns: when the call began, since 1970
        duration_ns int ns: how long it took: end less start, each rounded down. The sum of some \
        events differs by less than 1 ns for each of them from `ns` of totals, files and JSON, \
        which are rounded once for each of their rows
        {_WHAT}
        file text?: name of the file
        offset_bytes int? bytes: where the transfer began; null: not known
        calls int: 1 for a call of the program, 0 for one that a language's library made for it
        bytes int bytes: moved at the lowest level seen; 0 for a Fortran statement, whose system \
            calls are rows of their own
        ns int ns: the duration; 0 for what lies within another record
        error int32?: errno of a call that failed
        {_LABEL}
    """),
)
FILES = TableSchema(
    "files",
    "one row for each file and step: what `weir report` counts of it",
    _columns("""
        file text?: name that the file had last in the run, absolute; null: calls without one, \
            and all of level summary
        step text: name of the step
        ranks int: how many ranks used it
        opens int: calls that open it
        reads int: calls of the program that read
        writes int: calls of the program that write
        calls int: all calls of the program
        bytes_read int bytes: at the lowest level seen
        bytes_written int bytes: at the lowest level seen
        ns int ns: time in these calls, over all ranks
        errors int: calls that failed
        first_ns int ns: when the first call began, since 1970
        last_ns int ns: when the last one ended
        also text?: other names under which the step used it (earlier ones, and links), a line \
            for each; null: none
    """),
    f"""SELECT last_file AS file, step, count(DISTINCT rank_label)::BIGINT AS ranks,
        sum(CASE WHEN class = 'open' AND NOT below THEN calls ELSE 0 END)::BIGINT AS opens,
        sum(CASE WHEN class = 'read' AND NOT below THEN calls ELSE 0 END)::BIGINT AS reads,
        sum(CASE WHEN class = 'write' AND NOT below THEN calls ELSE 0 END)::BIGINT AS writes,
        sum(CASE WHEN below THEN 0 ELSE calls END)::BIGINT AS calls,
        sum(CASE WHEN class = 'read' AND {_SYSTEM} THEN bytes ELSE 0 END)::BIGINT AS bytes_read,
        sum(CASE WHEN class = 'write' AND {_SYSTEM} THEN bytes ELSE 0 END)::BIGINT
            AS bytes_written,
        sum(CASE WHEN {_HAS_OWN_TIME} THEN ns ELSE 0 END)::BIGINT AS ns, sum(errors)::BIGINT AS errors,
        min(first_ns) AS first_ns, max(last_ns) AS last_ns,
        string_agg(DISTINCT CASE WHEN file <> last_file THEN file END, chr(10)
            ORDER BY CASE WHEN file <> last_file THEN file END) AS also
        FROM totals WHERE {_COUNTED} GROUP BY last_file, step""",
)
_CALL = """
    function text?: function that was called; null: of PnetCDF, netCDF and HDF5 in a trace of an \
        earlier version
    collective bool?: whether all ranks make the call together; null: not known (netCDF-C with \
        parallel access; HDF5 but for the transfers of a parallel HDF5; PnetCDF's ncmpi_flush, \
        ncmpi_sync)
    file text?: name of the file; null: not known
    variable text?: variable or data set; null: a call on the whole file
    start_ns int ns: when the call began, since 1970, on the clock that the nodes share
    end_ns int ns: when it ended
    bytes int bytes: data of the program's buffers; 0 when the call moves none, or failed
    error int32?: of a call that failed: MPI's class of errors, 0 of the other libraries; null: \
        it did not
"""
LIBRARY_CALLS = TableSchema(
    "library_calls",
    "one row for each call of MPI-IO, PnetCDF, netCDF and HDF5, of the program or of a library "
    "above, by the name of the function. At level trace only; in no particular order",
    _columns(f"""
        {_WHO}
        thread int32: thread of the call, its number in the system
        library text: mpi_io, pnetcdf, netcdf, hdf5
        op text: operation of the trace, as in docs/reference/operations.md
        {_CALL}
        {_LABEL}
    """),
)


def _calls_of(library: str, of: str) -> TableSchema:
    columns = tuple(one for one in LIBRARY_CALLS.columns if one.name not in ("library", "op"))
    return TableSchema(f"{library}_calls", f"the rows of library_calls of {of}", columns,
        f"SELECT {', '.join(one.name for one in columns)} FROM library_calls "
        f"WHERE library = '{library}'")


LIBRARY_VIEWS = tuple(_calls_of(*one) for one in (("mpi_io", "MPI-IO"), ("pnetcdf", "PnetCDF"),
    ("netcdf", "netCDF-C"), ("hdf5", "HDF5")))
NAMES = TableSchema(
    "names",
    "the names in the trace: what the numbers of its records mean, process by process",
    _columns("""
        step text: name of the step
        node text: name of the node
        pid int32: process id; a forked child has its parent's names, too
        id int: number of the name in that process
        name text: as it was recorded, `//` and `/./` folded
        is_file bool: it is that of a file
        excluded bool: it is that of a system file or another one that reports leave out
        source text: given (by the program), descriptor (found in /proc/self/fd)
    """),
)
OPERATIONS = TableSchema(
    "operations",
    "all operations that a record can have",
    _columns("""
        value int: number in the trace
        op text: name
        layer text: who records it
        class text: read, write, open, close, other, none
    """),
)

# Those of weir.report, where each is declared once.
DECLARED = {one.name: one for kind in REPORT_TABLES for one in kind.listings}
TABLES = (
    EVENTS, IO, TOTALS, FILES, LIBRARY_CALLS, *LIBRARY_VIEWS, NAMES, OPERATIONS,
    *(TableSchema(one.name, one.meaning, tuple(one.columns)) for one in DECLARED.values()),
)  # fmt: skip
CLASSES = {"R": "read", "W": "write", "O": "open", "C": "close", "M": "other", "X": "none"}


def table_named(name: str) -> TableSchema:
    """The table of that name; KeyError when there is none."""
    for table in TABLES:
        if table.name == name:
            return table
    raise KeyError(name)
