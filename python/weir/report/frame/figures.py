# SPDX-License-Identifier: Apache-2.0
"""Figures as the tables print them. K is 1000, MB 1e6 bytes, GB 1e9."""

from __future__ import annotations


def thousands(count: int) -> str:
    """Calls: exact below 10,000, then in K."""
    return str(count) if count < 10_000 else f"{(count + 500) // 1000}K"


def short(value: float) -> str:
    """GB and seconds of the step table: no decimals from 100, one from 1, three below."""
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 0.9995:
        return f"{value:.1f}"
    return f"{value:.3f}" if value else "0"


def whole(value: float) -> str:
    return f"{value:.0f}"


def decimals(value: float) -> str:
    """Whole numbers as in the reference; three decimals where these would say nothing."""
    return f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.3f}"


def megabytes(count: int) -> float:
    return count / 1e6


def milliseconds(ns: int) -> float:
    return ns / 1e6


def rate(count: int, ns: int) -> float:
    """MB/s while in I/O; 0 where no time was spent."""
    return count * 1e3 / ns if ns else 0.0


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"


def ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}"


def share(part: float | None, of: float | None) -> float | None:
    return part / of if part is not None and of else None


def share_text(value: float) -> str:
    return f"{100 * value:.{0 if value >= 0.01 or value == 0 else 1}f}%"


def percent(part: float, of: float) -> str:
    return share_text(part / of) if of else "-"


def size(count: int) -> str:
    """A power of two with a binary unit, any other number as it is."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def duration(ns: int) -> str:
    for unit, step in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= step:
            return f"{ns / step:.3g} {unit}"
    return f"{ns} ns"
