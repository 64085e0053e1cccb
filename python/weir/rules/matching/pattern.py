# SPDX-License-Identifier: Apache-2.0
"""File-name patterns, as native/layers/machinery/rules/pattern.cc has them: fnmatch(3) without flags, in the C locale, over bytes."""

from __future__ import annotations

import functools
import os
import re

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~", "space": " \\t-\\r",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def fits(pattern: str, name: str) -> bool:
    """Whether the pattern fits the whole name."""
    return _compiled(pattern).fullmatch(os.fsencode(name)) is not None


@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[bytes]:
    source, at = os.fsencode(pattern), 0
    made = b""
    while at < len(source):
        c = source[at : at + 1]
        at += 1
        if c == b"*":
            made += b".*"
        elif c == b"?":
            made += b"."
        elif c == b"[" and (found := _bracket(source, at - 1)) is not None:
            text, at = found
            made += text
        elif c == b"\\":
            made += re.escape(source[at : at + 1]) if at < len(source) else b"(?!)"
            at += 1
        else:
            made += re.escape(c)
    return re.compile(made, re.S)


def _bracket(source: bytes, at: int) -> tuple[bytes, int] | None:
    """The bracket expression that begins here as a regular expression, and where it ends; None when it has no end."""
    i = at + 1
    negated = source[i : i + 1] in (b"!", b"^")
    i += negated
    first, members = i, b""
    while i < len(source):
        if source[i : i + 1] == b"]" and i != first:
            return _set(members, negated), i + 1
        named = re.compile(rb"\[:([a-z]*):\]").match(source, i)
        if named:
            members += _CLASSES.get(named[1].decode(), "").encode()
            i = named.end()
            continue
        low, i = _member(source, i)
        high = low
        if source[i : i + 1] == b"-" and i + 1 < len(source) and source[i + 1 : i + 2] != b"]":
            high, i = _member(source, i + 1)
        if low <= high:
            members += b"\\x%02x-\\x%02x" % (low, high)
    return None


def _set(members: bytes, negated: bool) -> bytes:
    if not members:
        return b"(?s:.)" if negated else b"(?!)"
    return b"[^" + members + b"]" if negated else b"[" + members + b"]"


def _member(source: bytes, i: int) -> tuple[int, int]:
    if source[i : i + 1] == b"\\" and i + 1 < len(source):
        i += 1
    return source[i], i + 1
