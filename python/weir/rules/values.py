# SPDX-License-Identifier: Apache-2.0
"""Parsers of the values that rules are made of: sizes, ranges, patterns, lists. Each raises Wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from weir.rules.mistakes import Wrong, listed, near

BLOCK = 4096  # FFIO's unit
_SIZE = re.compile(r"(\d+)\s*([A-Za-z]*)")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_LARGEST = (1 << 63) - 1


def parse_number(text: str, what: str = "a whole number") -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()):
        raise Wrong(f"{text.strip()!r} is not {what}")
    if int(stripped) > _LARGEST:
        raise Wrong(f"{stripped} is more than any file can hold")
    return int(stripped)


def parse_size(text: str, unit: int) -> int:
    """Bytes of ``1MiB``, ``64K``, ``4096B``; a number alone counts units of ``unit`` bytes. K, KB
    and KiB are all 1024."""
    stripped = text.strip()
    found = _SIZE.fullmatch(stripped) if stripped.isascii() else None
    suffix = found[2].lower() if found else ""
    prefix = re.sub(r"(ib|b)$", "", suffix)
    if not found or prefix not in _SHIFTS or (suffix == "ib"):
        plain = "blocks of 4 KiB" if unit == BLOCK else "bytes"
        raise Wrong(f"{stripped!r} is not a size: write a number of {plain}, or one with a unit "
                    f"such as 64KiB, 8M or 4096B")
    bytes_ = int(found[1]) * (1 << _SHIFTS[prefix] if suffix else unit)
    if bytes_ > _LARGEST:
        raise Wrong(f"{stripped} is more than any file can hold")
    return bytes_


def size_text(size: int) -> str:
    """The shortest exact way to write a size with its unit."""
    for suffix, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size and size % (1 << shift) == 0:
            return f"{size >> shift}{suffix}"
    return f"{size}B"


def parse_fraction(text: str) -> str:
    """A decimal number between 0 and 1, in its shortest form without an exponent."""
    stripped = text.strip()
    if not re.fullmatch(r"\d{0,9}(\.\d{0,12})?", stripped) or not any(c.isdigit()
            for c in stripped):
        raise Wrong(f"{stripped!r} is not a decimal number such as 0.01")
    if not 0 <= float(stripped) <= 1:
        raise Wrong(f"{stripped} does not lie between 0 and 1")
    whole, _, rest = stripped.partition(".")
    rest = rest.rstrip("0")
    return f"{int(whole or 0)}.{rest}" if rest else str(int(whole or 0))


def parts(text: str, separator: str = ",") -> list[tuple[int, str]]:
    """The parts of a list, without blanks around them, each with its offset in the text. Raises
    Wrong for an empty part."""
    found, at = [], 0
    for part in text.split(separator):
        stripped = part.strip()
        offset = at + len(part) - len(part.lstrip())
        if not stripped:
            raise Wrong("something is missing here: the list has an empty part" if text.strip()
                else "it is empty", at)
        found.append((offset, stripped))
        at += len(part) + 1
    return found


def parse_ranges(text: str, what: str) -> tuple[tuple[int, int], ...]:
    """``0-3,8``, sorted, with those joined that touch. ``what`` is named in messages: ranks, units.
    """
    ranges = []
    for offset, part in parts(text):
        found = re.fullmatch(r"(\d+)\s*(?:-\s*(\d+))?", part) if part.isascii() else None
        if not found:
            raise Wrong(f"{part!r} is not a number or a range of {what}, as in 0-3,8", offset)
        first, last = int(found[1]), int(found[2] or found[1])
        if last > 0x7FFFFFFF:
            raise Wrong(f"{last} is more than {what} can be", offset)
        if last < first:
            raise Wrong(f"{part}: the range ends before it begins", offset)
        ranges.append((first, last))
    return join_ranges(ranges)


def join_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_choice(text: str, known: Sequence[str], what: str) -> str:
    stripped = text.strip()
    if stripped.lower() not in known:
        raise Wrong(f"there is no {what} {stripped!r}" + (near(stripped, known)
            or f": choose {listed(known)}"))
    return stripped.lower()


def parse_choices(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Several of a few words, in the order of ``known``."""
    chosen = set()
    for offset, part in parts(text):
        try:
            chosen.add(parse_choice(part, known, what))
        except Wrong as wrong:
            raise Wrong(wrong.message, offset) from None
    return tuple(word for word in known if word in chosen)


_BRACKET = re.compile(r"\[[!^]?\]?(?:\[:[a-z]*:\]|\\.|[^\]\\])*\]", re.S)


def check_pattern(text: str) -> str:
    """A pattern as of fnmatch(3). Raises Wrong for what fnmatch takes for something else than was
    meant."""
    if not text:
        raise Wrong("the pattern is empty")
    if "\0" in text:
        raise Wrong("a file's name has no zero in it", text.index("\0"))
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise Wrong("the pattern ends within itself: write \\\\ for a backslash", len(text) - 1)
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "[":
            at = _check_bracket(text, at)
        else:
            at += 1
    return text


_CLASSES = ("alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "xdigit")


def _check_bracket(text: str, at: int) -> int:
    found = _BRACKET.match(text, at)
    if not found:
        raise Wrong("this [ has no end; write \\[ for the character", at)
    inner = found[0]
    for special in ("[.", "[="):
        if special in inner[1:]:
            raise Wrong(f"{special} within brackets is not supported", at + inner.index(special, 1))
    for name in re.finditer(r"\[:([a-z]*):\]", inner):
        if name[1] not in _CLASSES:
            raise Wrong(f"there is no class [:{name[1]}:]{near(name[1], _CLASSES)}",
                at + name.start())
    return found.end()


def check_name(text: str) -> str:
    check_pattern(text)
    if "/" in text:
        raise Wrong("a name is the last part of a path, without slashes: use path, or dir",
            text.index("/"))
    return text


def check_path(text: str) -> str:
    check_pattern(text)
    if text[0] not in "/*?[":
        raise Wrong(f"a path is matched from the root: begin it with a slash, or write */{text}")
    return text


def check_dir(text: str) -> str:
    """An absolute directory, in its plain form."""
    if not text.startswith("/"):
        raise Wrong("a directory must be absolute: begin it with a slash")
    if "\0" in text:
        raise Wrong("a directory's name has no zero in it", text.index("\0"))
    return normalised(text)


def normalised(path: str) -> str:
    """A path without //, /. and /.., as text: what the matcher does to paths."""
    words: list[str] = []
    for word in path.split("/"):
        if word == "..":
            del words[-1:]
        elif word not in ("", "."):
            words.append(word)
    return "/" + "/".join(words)


def check_file_system(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.+-]{1,47}", text):
        raise Wrong(f"{text!r} is not the name of a file system as /proc/mounts has it (lustre, "
                    f"nfs4, ext4, fuse.glusterfs)")
    return text
