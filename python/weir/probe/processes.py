# SPDX-License-Identifier: Apache-2.0
"""A function in several processes of this node that begin at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any


def _begin(barrier: Any, call: Callable[..., Any], results: Any, *arguments: Any) -> None:
    try:
        barrier.wait(30)
        results.put(call(*arguments))
    except BaseException as error:  # the parent waits for as many answers as there are processes
        results.put(error)


def of_processes(call: Callable[..., Any], count: int, *arguments: Any) -> list[Any]:
    """What each finds; a process gets the arguments and its number. Raises what one of them
    raised."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(count), context.Queue()
    started = [context.Process(target=_begin, args=(barrier, call, results, number, *arguments))
        for number in range(count)]
    for one in started:
        one.start()
    found = [results.get(timeout=60) for _ in started]
    for one in started:
        one.join()
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found
