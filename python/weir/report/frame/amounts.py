# SPDX-License-Identifier: Apache-2.0
"""Figures in sentences: three significant digits, with the unit behind them."""

from __future__ import annotations

_NO_BREAK = "\u00a0"


def digits(value: float) -> str:
    """Three significant digits, no exponent below 10^15, commas between thousands."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"


def with_unit(value: float, unit: str) -> str:
    return f"{digits(value)}{_NO_BREAK}{unit}"


def seconds(value: float) -> str:
    """Seconds in the unit that suits them: us, ms, s, min, h."""
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1, 1e3, "ms"), (600, 1, "s"),
            (36_000, 1 / 60, "min")):
        if abs(value) < limit:
            return with_unit(value * scale, unit)
    return with_unit(value / 3600, "h")


def amount(count: float) -> str:
    """Bytes in kB, MB, GB, TB of 1000."""
    for limit, scale, unit in ((1e3, 1, "B"), (1e6, 1e-3, "kB"), (1e9, 1e-6, "MB"),
            (1e12, 1e-9, "GB")):
        if count < limit:
            return with_unit(count * scale, unit)
    return with_unit(count * 1e-12, "TB")


def number(count: float) -> str:
    """A count: all digits, commas between thousands."""
    return f"{count:,.0f}"


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`"""
    return f"{number(count)} {noun}{'s' * (count != 1)}"


def share(part: float, whole: float) -> str:
    """Per cent; what is not nothing never looks like nothing."""
    if not whole:
        return "-"
    value = 100 * part / whole
    text = (
        "0"
        if value == 0
        else "<0.1"
        if value < 0.1
        else f"{value:.1f}"
        if value < 10
        else f"{value:.0f}"
    )
    return f"{text}{_NO_BREAK}%"


MOST_NAME = 160  # characters of a name: some three lines of a table


def brief(name: str) -> str:
    """A path that fits the page's tables."""
    return fitted(name, MOST_NAME)


def fitted(name: str, width: int) -> str:
    """A path without its middle where it is longer than `width` characters: its end distinguishes
    files, its beginning only shows the file system."""
    if len(name) <= width:
        return name
    end = (width - 3) * 4 // 5
    return f"{name[: width - 3 - end]}...{name[-end:]}"


FILTERS = {"seconds": seconds, "amount": amount, "number": number, "digits": digits, "brief": brief}


def plain(text: str) -> str:
    """The text in ASCII: sentences have blanks at which a page breaks no line."""
    return text.translate({0xA0: " ", 0x2026: "..."})
