# SPDX-License-Identifier: Apache-2.0
"""What kinds of file systems there are to be had, as data. Every number can be overridden at the
mount."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Preset:
    """The options of a mount. A metadata request takes ``round_trip_us`` and its turn of
    ``metadata_us`` at the one metadata server; a data request ``round_trip_us`` and ``data_us``,
    and its bytes their turn at ``bandwidth_mb`` (10^6 bytes per second; 0: no limit). Timeouts are
    how long the kernel believes names and attributes without asking."""

    meaning: str
    round_trip_us: float = 0
    metadata_us: float = 0
    data_us: float = 0
    bandwidth_mb: float = 0
    direct_io: bool = False
    attr_timeout_s: float = 0
    entry_timeout_s: float = 0

    def options(self) -> dict[str, float]:
        values = asdict(self)
        del values["meaning"]
        return {name: int(value) if isinstance(value, bool) else value
            for name, value in values.items()}


PRESETS: dict[str, Preset] = {
    "local": Preset("as the backing directory, but counted; the kernel caches", attr_timeout_s=1,
        entry_timeout_s=1),
    "direct": Preset("no latency, no page cache: every call is a request, and is counted",
        direct_io=True),
    "lustre": Preset(
        "a parallel file system, not cached on the node",
        round_trip_us=300,
        metadata_us=50,
        data_us=300,
        bandwidth_mb=1000,
        direct_io=True,
    ),
    "nfs": Preset(
        "a file server on a 10 Gbit/s network, cached on the node, asked for every name and size",
        round_trip_us=200,
        metadata_us=100,
        data_us=100,
        bandwidth_mb=1100,
    ),
    "wan": Preset(
        "a file system of another site", round_trip_us=10_000, metadata_us=50, data_us=300,
        bandwidth_mb=100, direct_io=True
    ),
}
