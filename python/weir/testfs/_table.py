# SPDX-License-Identifier: Apache-2.0
"""The counters as people read them."""

from __future__ import annotations

from weir.testfs._stats import Stats, Transfers

_FILES_SHOWN = 20


def table(stats: Stats) -> str:
    lines = [f"{'requests':<14}{'number':>10}{'errors':>8}"]
    lines += [
        f"{kind:<14}{count:>10}{stats.errors.get(kind, 0):>8}" for kind, count in stats.requests
        .items() if count
    ] or ["none"]
    lines += ["", f"{'':<8}{'MB':>12}{'requests':>10}{'4 KiB':>9}{'1 MiB':>9}  aligned"]
    lines += [
        _transfers("read", stats.bytes_read, stats.requests["read"], stats.reads),
        _transfers("written", stats.bytes_written, stats.requests["write"], stats.writes),
        "",
        f"in flight at one time: {stats.max_in_flight}, data requests {stats.max_data_in_flight}; "
        f"injected errors: {stats.injected}",
    ]
    return "\n".join(lines + _files(stats)) + "\n"


def _transfers(what: str, size: int, requests: int, transfers: Transfers) -> str:
    return f"{what:<8}{size / 1e6:>12.3f}{requests:>10}{transfers.aligned_4k:>9}{transfers.aligned_1m:>9}"


def _files(stats: Stats) -> list[str]:
    used = sorted(stats.files.items(), key=lambda item: -sum(item[1].requests.values()))
    if not used:
        return []
    lines = ["", f"{'opens':>8}{'reads':>9}{'MB read':>11}{'writes':>9}{'MB written':>12}  file"]
    lines += [
        f"{f.opens:>8}{f.reads:>9}{f.bytes_read / 1e6:>11.3f}{f.writes:>9}{f.bytes_written / 1e6:>12.3f}  {name}"
        for name, f in used[:_FILES_SHOWN]
    ]
    if len(used) > _FILES_SHOWN:
        lines.append(f"and {len(used) - _FILES_SHOWN} more files (--json has all)")
    return lines
