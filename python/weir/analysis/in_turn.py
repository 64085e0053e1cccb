# SPDX-License-Identifier: Apache-2.0
"""Pieces of work on threads, taken in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from weir.analysis.memory import follow

Answer = TypeVar("Answer")


def in_turn(function: Callable[..., Answer], pieces: Iterable[tuple]) -> Iterator[Answer]:
    """function(*piece) of each piece in their order, some at once in threads of this process; no
    more answers wait than there are processors."""
    most = os.cpu_count() or 1
    waiting: deque[Future[Answer]] = deque()
    with ThreadPoolExecutor(max_workers=most, initializer=follow) as pool:
        for piece in pieces:
            if len(waiting) == most:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, *piece))
        while waiting:
            yield waiting.popleft().result()
