# SPDX-License-Identifier: Apache-2.0
"""Planes of numbers as short text for the page: logarithms in 8 or 16 bits, deflated, base64.

Pictures need the order of magnitude: with 254 steps between the least and the greatest number of a
plane a figure is off by half a step at most (4 % where they are 2^30 apart); nothing stays nothing.
The tables have the exact figures.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Packed:
    """Planes behind one another. A code k > 0 of plane i means least[i] * exp((k - 1) * step[i]),
    code 0 means 0."""

    bits: int
    least: tuple[float, ...]
    step: tuple[float, ...]
    text: str


def pack(planes: Iterable[np.ndarray], bits: int = 8,
        most_text: int | None = None) -> Packed | None:
    """All planes, each with a scale of its own; numbers must not be negative. None where the text
    would be longer than that, which the first planes may show."""
    kind = {8: np.dtype("u1"), 16: np.dtype("<u2")}[bits]
    squeezer, least, step = zlib.compressobj(6), [], []
    squeezed = b""
    for plane in planes:
        codes, low, width = _codes(plane.astype(np.float64).ravel(), 2**bits - 2)
        squeezed += squeezer.compress(codes.astype(kind).tobytes())
        least.append(low)
        step.append(width)
        if most_text is not None and _text_length(squeezed) > most_text:
            return None
    squeezed += squeezer.flush()
    if most_text is not None and _text_length(squeezed) > most_text:
        return None
    return Packed(bits, tuple(least), tuple(step), base64.b64encode(squeezed).decode("ascii"))


def _text_length(squeezed: bytes) -> int:
    return 4 * -(-len(squeezed) // 3)


def _codes(values: np.ndarray, steps: int) -> tuple[np.ndarray, float, float]:
    out = np.zeros(len(values), np.int64)
    some = values > 0
    if not some.any():
        return out, 1.0, 0.0
    logs = np.log(values[some])
    low, high = float(logs.min()), float(logs.max())
    step = (high - low) / steps
    out[some] = 1 + (np.rint((logs - low) / step).astype(np.int64) if step else 0)
    return out, float(np.exp(low)), step


def unpack(packed: Packed, planes: int) -> list[np.ndarray]:
    """What the page's script makes of it."""
    raw = zlib.decompress(base64.b64decode(packed.text))
    codes = np.frombuffer(raw, {8: "u1", 16: "<u2"}[packed.bits]).reshape(planes,
        -1).astype(np.float64)
    return [
        np.where(one > 0, least * np.exp((one - 1) * step), 0.0) for one, least, step in zip(codes,
            packed.least, packed.step)
    ]
