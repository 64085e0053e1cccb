# SPDX-License-Identifier: Apache-2.0
"""The C ABI of libweir-reader.so (native/reader/weir_reader.h) for ctypes and numpy. Nothing but
layouts and signatures."""

from __future__ import annotations

import ctypes as c
import functools

import numpy as np

from weir._native import load_reader

BINS = 36
ARRAYS = ("chunks", "processes", "texts", "names", "rows", "histograms", "units", "syncs",
    "problems", "exchanges")


def _layout(text: str) -> np.dtype:
    """A packed dtype from 'name:type' words; the C structs have no padding that they do not name.
    """
    return np.dtype([tuple(word.split(":")) for word in text.split()])


LAYOUTS = {
    "chunks": _layout(
        "offset:<u8 size_bytes:<u8 entries:<u8 log:<u8 sequence:<u8 taken_ticks:<u8 "
        "first_ticks:<u8 last_ticks:<u8"
        " kind:<u4 process:<u4 thread:<u4 disordered:<u4 silent:<u4 is_checked:<u4"
    ),
    "processes": _layout("offset:<u8 events:<u8 counted:<u8 page:<u4 whole:<u4"),
    "texts": _layout("offset:<u8 length:<u4 is_file:<u4"),
    "names": _layout("process:<u4 id:<u4 text:<u4 source:<u4"),
    "rows": _layout(
        "process:<u4 file:<u4 op:u1 layer:u1 flags:u1 is_file:u1 reserved:<u4"
        " calls:<u8 bytes:<u8 ticks:<u8 errors:<u8 first_ticks:<u8 last_ticks:<u8"
    ),
    "histograms": np.dtype(
        [("process", "<u4"), ("op", "u1"), ("layer", "u1"), ("flags", "u1"), ("is_file", "u1"),
         ("by_size", "<u8", (BINS,)), ("by_duration", "<u8", (BINS,))]
    ),
    "units": _layout(
        "process:<u4 file:<u4 unit:<i8 op:<u4 flags:<u4 calls:<u8 bytes:<u8 ticks:<u8"),
    "syncs": _layout("process:<u4 index:<u4 ranks:<u8 ticks:<u8"),
    "exchanges": _layout("process:<u4 file:<u4 routine:<u4 peer:<u4 calls:<u8 bytes:<u8"),
    "problems": _layout("offset:<u8 count:<u8 reason:<u4 reserved:<u4"),
}

# An event as it lies in the file; docs/formats/trace.md 3.3.
RECORD = _layout(
    "start:<u8 duration:<u4 file:<u4 offset_size:<u8 size_low:<u4 op:u1 layer:u1 flags:u1 error:u1")

# Of native/reader/weir_spread.h.
SPREAD_ROW = _layout(
    "ns:<i8 bytes:<i8 begin:<i8 end:<i8 name:<i4 way:<i4 rank:<i4 node:<i4 counts:<i4 reserved:<i4")
SPREAD_FILE = _layout(
    "ranks:<i8 interleaved:<i8 fastest_rank:<i8 fastest_ns:<i8 slowest_rank:<i8 slowest_ns:<i8 "
    "mean_ns:<f8 squares_ns:<f8 mean_bytes:<f8 squares_bytes:<f8 name:<i4 way:<i4"
)

# Of native/reader/weir_accesses.h.
ACCESSES_ROW = _layout(
    " ".join(f"{name}:<i8" for name in (
        "calls bytes sequential consecutive first adjacent strided backward random unknown "
        "off_block off_stripe ns again switches begin end longest_ns block stripe").split())
    + " name:<i4 rank:<i4 way:<i4 node:<i4"
)
ACCESSES_COMMON = _layout("key:<i8 is_stride:<i8 value:<i8 count:<i8")
ACCESSES_LOST = _layout("process:<u4 file:<u4 name:<i4 reserved:<u4")

# A counter and a histogram as they lie in the file; docs/formats/trace.md 3.4.
COUNTER = _layout(
    "file:<u4 op:u1 layer:u1 flags:u1 form:u1 calls:<u8 bytes:<u8 ticks:<u8 errors:<u8 first:<u8 "
    "last:<u8 histogram:<u8"
)
HISTOGRAM = np.dtype(
    [("of_others", "<u4"), ("op", "u1"), ("layer", "u1"), ("flags", "u1"), ("form", "u1"),
        ("reserved", "<u8", (7,)),
     ("by_size", "<u8", (BINS,)), ("by_duration", "<u8", (BINS,))]
)  # fmt: skip


class Header(c.Structure):
    _fields_ = [
        ("clock", c.c_uint32), ("level", c.c_uint32),
        ("budget_bytes", c.c_uint64), ("end_bytes", c.c_uint64), ("file_bytes", c.c_uint64),
        ("created_realtime_ns", c.c_uint64), ("created_mono_ns", c.c_uint64),
        ("created_ticks", c.c_uint64),
        ("ns_per_tick", c.c_double), ("node", c.c_char * 64),
        ("refused", c.c_uint32), ("refused_by", c.c_uint32),
    ]  # fmt: skip


class Clock(c.Structure):
    _fields_ = [("origin_ticks", c.c_uint64), ("base_ns", c.c_int64), ("multiplier", c.c_uint64)]


class Cursor(c.Structure):
    _fields_ = [
        ("chunk", c.c_uint64), ("record", c.c_uint64), ("end_chunk", c.c_uint64),
        ("thread", c.c_uint32), ("reserved", c.c_uint32),
    ]  # fmt: skip


# Columns of raw records, in the order of the C struct.
EVENT_COLUMNS = _layout(
    "start_ns:<i8 duration_ns:<i8 offset:<i8 bytes:<i8 process:<u4 thread:<u4 file:<u4 text:<u4 "
    "op:u1 layer:u1 flags:u1 error:u1"
)
EventColumns = c.c_void_p * len(EVENT_COLUMNS.names or ())


# Columns of transfers, in the order of the C struct (native/reader/weir_transfers.h).
TRANSFER_COLUMNS = _layout(
    "begin_ns:<i8 length_ns:<i8 offset:<i8 bytes:<i8 process:<u4 text:<u4 way:u1")
TransferColumns = c.c_void_p * len(TRANSFER_COLUMNS.names or ())


class Window(c.Structure):
    _fields_ = [
        ("origin_ns", c.c_int64), ("bins", c.c_uint64),
        ("shift", c.c_uint32), ("rows", c.c_uint32), ("groups", c.c_uint32),
        ("threads", c.c_uint32),
    ]  # fmt: skip


# Files of processes whose reads are looked at; and what was read of them.
READ_OF = _layout("process:<u4 file:<u4 group:<u4")
EXTENT = _layout("known_bytes:<u8 distinct_bytes:<u8")
USE = _layout("bytes:<u8 own_ns:<u8 first_ns:<i8 last_ns:<i8")


class Reads(c.Structure):
    _fields_ = [
        ("readers", c.POINTER(c.c_void_p)), ("clocks", c.POINTER(Clock)),
        ("files", c.POINTER(c.c_void_p)),
        ("files_count", c.POINTER(c.c_uint64)), ("count", c.c_uint64), ("threads", c.c_uint32),
    ]  # fmt: skip


class ReplayRun(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ("ops", "strands", "instances")] + [
        (name, c.c_void_p)
        for name in (
            "start_ns", "end_ns", "first_op", "first_join", "joins", "first_wait", "waits",
        )
    ]  # fmt: skip


class Replayed(c.Structure):
    _fields_ = [
        ("finish_ns", c.c_int64), ("replayed_finish_ns", c.c_int64), ("not_followed", c.c_uint64),
        ("path_length", c.c_uint64), ("path", c.c_void_p), ("awaited", c.c_void_p),
    ]  # fmt: skip


# Processes whose calls count, and rows of files and operations.
MEMBER = _layout(
    "reader:<u8 origin_ticks:<u8 base_ns:<i8 multiplier:<u8 process:<u4 thread:<u4 is_whole:<u4 "
    "reserved:<u4"
)
CALL_ROW = _layout("file:<u4 op:<u4 row:<u4")
CAUSED = _layout("io_wait_ns:<i8 imbalance_ns:<i8 io_ns:<i8 calls_ns:<i8 all_calls_ns:<i8")
LINE_FIGURES = 9


def pointer_to(array: np.ndarray) -> int:
    """Where it lies; the caller keeps it."""
    return array.ctypes.data


class LineCalls(c.Structure):
    _fields_ = [
        ("members", c.c_void_p), ("members_count", c.c_uint64),
        ("callers", c.c_void_p), ("callers_count", c.c_uint64),
        ("at_ns", c.c_void_p), ("timestamps", c.c_uint64),
        ("room", c.c_uint64), ("wanted", c.c_uint32), ("reserved", c.c_uint32),
        ("since_ns", c.c_int64),
    ]  # fmt: skip


class Side(c.Structure):
    """Timestamps of lines (native/reader/weir_lines.h)."""

    _fields_ = [
        ("at_ns", c.c_void_p), ("first", c.c_void_p), ("lengths", c.c_void_p * LINE_FIGURES)
    ]  # fmt: skip


class Lines(c.Structure):
    _fields_ = [
        ("count", c.c_uint64), ("members", c.c_void_p), ("first_member", c.c_void_p),
        ("callers", c.c_void_p), ("first_caller", c.c_void_p), ("sides", c.POINTER(Side)),
        ("sides_count", c.c_uint64), ("room", c.c_uint64),
    ]  # fmt: skip


class Edges(c.Structure):
    _fields_ = [
        ("members", c.c_void_p), ("members_count", c.c_uint64),
        ("first_row", c.c_void_p), ("rows", c.c_void_p),
        ("at_ns", c.c_void_p), ("count", c.c_uint64),
    ]  # fmt: skip


class Stays(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ("strands", "count", "asked")] + [
        (name, c.c_void_p)
        for name in ("strand", "awaited", "begin_ns", "until_ns", "asked_strand", "asked_ns")
    ]  # fmt: skip


PATH_PIECE = _layout("op:<u4 before:<u4 price:<f8")
TILE = np.dtype([("busy_ns", "<u8", (3,)), ("calls", "<u8", (3,)), ("bytes", "<u8", (2,)),
    ("waiting_ns", "<u8")])
NO_ROW = 2**32 - 1


@functools.cache
def library() -> c.CDLL:
    """The loaded library with its signatures set. Raises LibraryMissing and LibraryStale of
    weir._native."""
    lib = load_reader()
    p64 = c.POINTER(c.c_uint64)
    signatures = {
        "create": (c.c_void_p, [c.c_char_p, c.c_char_p, c.c_uint64, p64]),
        "destroy": (None, [c.POINTER(c.c_void_p)]),
        "exclude": (None, [c.c_void_p, c.c_void_p, c.c_uint64]),
        "scan": (c.c_int, [c.c_void_p, c.c_uint32]),
        "syncs": (c.c_int, [c.c_void_p]),
        "forget": (None, [c.c_void_p]),
        "rows_of": (c.c_void_p, [c.c_void_p, c.c_uint32, c.c_uint32, p64]),
        "free_rows": (None, [c.c_void_p]),
        "get_header": (None, [c.c_void_p, c.POINTER(Header)]),
        "bytes": (c.c_void_p, [c.c_void_p, p64]),
        "get": (c.c_void_p, [c.c_void_p, c.c_uint32, p64, p64]),
        "texts_of": (None, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_uint64, c.c_void_p]),
        "copy_texts": (None, [c.c_void_p, c.c_char_p]),
        "reason": (c.c_char_p, [c.c_uint32]),
        "op": (c.c_char_p, [c.c_uint32, c.POINTER(c.c_uint32), c.c_char_p]),
        "op_size": (c.c_char_p, [c.c_uint32]),
        "function": (c.c_char_p,
            [c.c_uint32, c.POINTER(c.c_uint32), c.POINTER(c.c_uint32), c.c_char_p]),
        "layer": (c.c_char_p, [c.c_uint32]),
        "statistic": (c.c_char_p, [c.c_uint32, c.c_uint32, c.POINTER(c.c_char_p)]),
        "active": (
            c.c_int,
            [c.POINTER(c.c_void_p), c.POINTER(Clock), c.POINTER(c.c_void_p), c.c_uint64, c.c_uint32,
                c.c_uint32]
            + [c.POINTER(c.c_int64)] * 3 + [p64],
        ),
        "timestamps": (None, [c.POINTER(Clock), c.c_void_p, c.c_uint64, c.c_void_p]),
        "lengths": (None, [c.POINTER(Clock), c.c_void_p, c.c_uint64, c.c_void_p]),
    }  # fmt: skip
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, f"weir_reader_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


@functools.cache
def events_function() -> object:
    """weir_reader_events with its signature set."""
    function = library().weir_reader_events
    function.argtypes = [c.c_void_p, c.POINTER(Clock), c.POINTER(Cursor), c.c_uint64,
        c.c_void_p, c.c_void_p, c.POINTER(EventColumns)]
    function.restype = c.c_uint64
    return function


@functools.cache
def records_function() -> object:
    """weir_reader_records with its signature set."""
    function = library().weir_reader_records
    function.argtypes, function.restype = [c.c_void_p, c.c_uint64], c.c_void_p
    return function


@functools.cache
def transfers_functions() -> tuple[object, object, object]:
    """weir_transfers_create, _next and _destroy with their signatures set."""
    create, following, destroy = (
        getattr(library(), f"weir_transfers_{name}") for name in ("create", "next", "destroy")
    )
    create.argtypes = [c.c_void_p, c.POINTER(Clock), c.c_void_p, c.c_void_p]
    create.restype = c.c_void_p
    following.argtypes = [c.c_void_p, c.c_uint64, c.POINTER(TransferColumns),
        c.POINTER(c.c_uint64)]
    following.restype = c.c_int
    destroy.argtypes, destroy.restype = [c.POINTER(c.c_void_p)], None
    return create, following, destroy


@functools.cache
def times_function() -> object:
    """weir_reader_times with its signature set."""
    function = library().weir_reader_times
    function.argtypes, function.restype = [c.c_void_p, c.c_uint32], c.c_int
    return function


# What offsets of a file are compared with, 0: not known.
ALIGNMENT = _layout("block_bytes:<u4 stripe_bytes:<u4")


@functools.cache
def leave_function() -> object:
    """weir_reader_leave with its signature set."""
    function = library().weir_reader_leave
    function.argtypes, function.restype = [c.c_void_p], None
    return function


class AccessesFile(c.Structure):
    _fields_ = [
        ("reader", c.c_void_p), ("clock", Clock), ("alignment", c.c_void_p), ("names", c.c_void_p),
        ("ranks", c.c_void_p), ("chosen", c.c_void_p), ("lost", c.c_void_p),
        ("lost_count", c.c_uint64),
    ]  # fmt: skip


class AccessesChoice(c.Structure):
    _fields_ = [
        ("apart", c.c_void_p), ("apart_count", c.c_uint64), ("loose", c.c_void_p),
        ("loose_count", c.c_uint64), ("most_values", c.c_uint64), ("added_at_once", c.c_uint64),
        ("kept", c.c_uint64 * 2), ("all_names", c.c_uint32), ("by_rank", c.c_uint32),
        ("threads", c.c_uint32), ("reserved", c.c_uint32),
    ]  # fmt: skip


@functools.cache
def accesses_functions() -> dict[str, object]:
    """weir_accesses_create, _rows, _commons, _spread, _kept and _destroy by the last word of their
    names (native/reader/weir_accesses.h), with their signatures set."""
    made = {
        name: getattr(library(), f"weir_accesses_{name}")
        for name in ("create", "rows", "commons", "spread", "kept", "destroy")
    }
    made["create"].argtypes = [
        c.POINTER(AccessesFile), c.c_uint64, c.POINTER(AccessesChoice), c.POINTER(c.c_uint32)
    ]  # fmt: skip
    made["create"].restype = c.c_void_p
    for name in ("rows", "commons", "spread", "kept"):
        made[name].argtypes = [c.c_void_p, c.POINTER(c.c_uint64)]
        made[name].restype = c.c_void_p
    made["destroy"].argtypes, made["destroy"].restype = [c.POINTER(c.c_void_p)], None
    return made


@functools.cache
def spread_functions() -> tuple[object, object, object, object, object]:
    """weir_spread_create, _add, _join, _get and _destroy (native/reader/weir_spread.h) with their
    signatures set."""
    create, add, join, get, destroy = (
        getattr(library(), f"weir_spread_{name}")
        for name in ("create", "add", "join", "get", "destroy")
    )
    create.argtypes, create.restype = [], c.c_void_p
    for function in (add, join):
        function.argtypes, function.restype = [c.c_void_p, c.c_void_p, c.c_uint64], c.c_int
    get.argtypes, get.restype = [c.c_void_p, c.POINTER(c.c_uint64)], c.c_void_p
    destroy.argtypes, destroy.restype = [c.POINTER(c.c_void_p)], None
    return create, add, join, get, destroy


@functools.cache
def exchanges_function() -> object:
    """weir_reader_exchanges with its signature set."""
    function = library().weir_reader_exchanges
    function.argtypes, function.restype = [c.c_void_p, c.c_uint32], c.c_int
    return function


@functools.cache
def tiles_function() -> object:
    """weir_reader_tiles with its signature set."""
    function = library().weir_reader_tiles
    pointers = [c.POINTER(c.c_void_p), c.POINTER(Clock), c.POINTER(c.c_void_p),
        c.POINTER(c.c_void_p)]
    function.argtypes = [*pointers, c.c_uint64, c.c_uint32, c.POINTER(Window), c.c_void_p,
        c.c_void_p]
    function.restype = c.c_int
    return function


@functools.cache
def reads_functions() -> tuple[object, object]:
    """weir_reader_uses_between and weir_reader_read_extents with their signatures set."""
    between, extents = library().weir_reader_uses_between, library().weir_reader_read_extents
    between.argtypes = [c.POINTER(Reads), c.c_char, c.c_void_p, c.c_uint64, c.c_void_p, c.c_void_p]
    extents.argtypes = [c.POINTER(Reads), c.c_void_p, c.c_uint64, c.c_uint64, c.c_void_p,
        c.c_void_p]
    between.restype = extents.restype = c.c_int
    return between, extents


@functools.cache
def replay_functions() -> tuple[object, object]:
    """weir_reader_replay_order and weir_reader_replay_run with their signatures set."""
    order, run = library().weir_reader_replay_order, library().weir_reader_replay_run
    order.argtypes = [c.POINTER(ReplayRun), c.c_void_p]
    run.argtypes = [c.POINTER(ReplayRun), c.c_void_p, c.c_void_p, c.POINTER(Replayed)]
    order.restype = run.restype = c.c_int
    return order, run


@functools.cache
def line_functions() -> tuple[object, object, object]:
    """weir_reader_line_lengths, weir_reader_call_time and weir_reader_call_shares with their
    signatures set."""
    lib = library()
    lengths, time = lib.weir_reader_line_lengths, lib.weir_reader_call_time
    shares = lib.weir_reader_call_shares
    lengths.argtypes = [c.POINTER(LineCalls), c.c_void_p, c.c_void_p]
    time.argtypes = [c.POINTER(Edges), c.c_uint64, c.c_void_p]
    shares.argtypes = [c.POINTER(Edges), c.c_uint64, c.c_void_p, c.c_void_p]
    lengths.restype = time.restype = shares.restype = c.c_int
    return lengths, time, shares


@functools.cache
def lines_function() -> object:
    """weir_reader_lines_lengths with its signature set."""
    function = library().weir_reader_lines_lengths
    function.argtypes, function.restype = [c.POINTER(Lines)], c.c_int
    return function


@functools.cache
def causes_functions() -> tuple[object, object, object, object, object]:
    """weir_reader_causes_create, _points, _give, _run and _destroy with their signatures set."""
    create, points, give, run, destroy = (
        getattr(library(), f"weir_reader_causes_{name}")
        for name in ("create", "points", "give", "run", "destroy")
    )
    create.argtypes, create.restype = [c.POINTER(Stays)], c.c_void_p
    points.argtypes = [c.c_void_p, c.POINTER(c.c_void_p)]
    points.restype = c.c_void_p
    give.argtypes = [c.c_void_p, c.c_uint64, c.c_uint64, c.POINTER(c.c_void_p)]
    give.restype = c.c_int
    run.argtypes, run.restype = [c.c_void_p, c.c_void_p], c.c_int
    destroy.argtypes, destroy.restype = [c.POINTER(c.c_void_p)], None
    return create, points, give, run, destroy


@functools.cache
def spill_functions() -> tuple[object, object, object]:
    """weir_spill_begin, _get_handler and _bytes (native/reader/weir_spill.h) with their signatures
    set."""
    begin, handler, sizes = (
        getattr(library(), f"weir_spill_{name}") for name in ("begin", "get_handler", "bytes")
    )
    begin.argtypes, begin.restype = [c.c_int, c.c_uint64], c.c_int
    handler.argtypes, handler.restype = [c.POINTER(c.c_void_p)], c.c_void_p
    sizes.argtypes, sizes.restype = [c.POINTER(c.c_uint64)] * 2, None
    return begin, handler, sizes


class Growing(c.Structure):
    _fields_ = [(name, c.c_void_p) for name in ("first_of", "at_ns", "total_ns", "slope")]


class OutputAsked(c.Structure):
    _fields_ = [
        ("ranks", c.c_uint32), ("labels", c.c_uint32), ("threads", c.c_uint32),
        ("reserved", c.c_uint32),
        *((name, c.c_void_p) for name in
            ("rank_of", "thread_of", "is_plain", "label_of", "members_of", "file_of",
             "first_cut_of", "cut_at_ns", "cut_label")),
        ("waited", Growing), ("waiting", Growing), ("arriving", Growing),
    ]  # fmt: skip


OUTPUT_COST = _layout(
    "rank:<u4 label:<u4 of:<u4 reserved:<u4 calls:<u8 bytes:<u8 mpi_ns:<i8 library_ns:<i8"
    " system_ns:<i8 gather_ns:<i8 packing_ns:<i8 waiting_ns:<i8 waited_ns:<i8"
)
OF_LABEL, OF_FILE, OF_RANK = range(3)


@functools.cache
def output_costs_function() -> object:
    """weir_reader_output_costs (native/reader/weir_output_cost.h) with its signature set."""
    function = library().weir_reader_output_costs
    function.argtypes = [c.c_void_p, c.POINTER(Clock), c.POINTER(OutputAsked), c.c_void_p,
        c.c_uint64, c.POINTER(c.c_uint64)]
    function.restype = c.c_int
    return function
