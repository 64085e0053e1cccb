# SPDX-License-Identifier: Apache-2.0
"""What a trace file holds, by its chunk headers and one byte of each record
(docs/formats/trace.md). Standard library alone."""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
CHUNK_MAGIC = 0x4B484357
PROCESS, EVENTS, COUNTERS = 1, 3, 4
OPS_DEF = Path(__file__).resolve().parents[2] / "native" / "wire" / "ops.def"
OP_VALUES = {
    name: int(value) for value, name in re.findall(r'^WEIR_OP\((\d+), \w+, "(\w+)"',
        OPS_DEF.read_text(), re.MULTILINE)
}


@dataclass(frozen=True)
class TraceFacts:
    """Sums over all processes of a file."""

    file_bytes: int
    event_bytes: int  # of the chunks of events, as far as they are filled, with their headers
    records: Counter[int]  # by operation
    counted: Counter[int]  # calls in counters, by operation
    lost_events: int  # calls of which not even a counter is there
    failures: int

    @property
    def events(self) -> int:
        return sum(self.records.values())

    def calls(self, op: str) -> int:
        """Records and counted calls of an operation, by its name in ops.def."""
        return self.records[OP_VALUES[op]] + self.counted[OP_VALUES[op]]


def read_facts(path: Path) -> TraceFacts:
    data = memoryview(path.read_bytes())
    records: Counter[int] = Counter()
    counted: Counter[int] = Counter()
    lost = failures = event_bytes = 0
    at = PAGE
    while at + 64 <= len(data):
        magic, kind, size = struct.unpack_from("<IIQ", data, at)
        if magic != CHUNK_MAGIC:
            at += PAGE
            continue
        (used,) = struct.unpack_from("<Q", data, at + 32)
        if kind == EVENTS:
            ops = bytes(data[at + 64 + 28 : at + 64 + min(used, (size - 64) // 32)
                * 32 : 32]).rstrip(b"\0")
            records.update(ops)
            event_bytes += 64 + 32 * len(ops)
        elif kind == COUNTERS:
            entry, end = at + 64, at + 64 + min(used, (size - 64) // 64) * 64
            while entry < end:
                is_histogram = data[entry + 7] == 1
                if not is_histogram:
                    counted[data[entry + 4]] += struct.unpack_from("<Q", data, entry + 8)[0]
                entry += 640 if is_histogram else 64
        elif kind == PROCESS:
            more_lost, more_failures = struct.unpack_from("<QQ", data, at + 144)
            lost, failures = lost + more_lost, failures + more_failures
        at += size
    del records[0]  # holes
    return TraceFacts(len(data), event_bytes, records, counted, lost, failures)
