# SPDX-License-Identifier: Apache-2.0
"""Work of native code that a thread of its own does before anybody asks for it: Python goes on
meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from weir.analysis.memory import follow


class Begun:
    """The answer of some work, once it is done."""

    def __init__(self) -> None:
        self._answer: Future[Any] = Future()

    def run(self, work: Callable[[], Any]) -> None:
        try:
            self._answer.set_result(work())
        except BaseException as error:  # noqa: BLE001: raised where the answer is asked for
            self._answer.set_exception(error)

    def answer(self) -> Any:
        """Raises what the work raised."""
        return self._answer.result()


def begin(*works: Callable[[], Any]) -> list[Begun]:
    """Begin these works, one after the other. They must use nothing that others change meanwhile.
    Who ends before they are done (an interrupt) does not wait for them."""
    made = [Begun() for _ in works]

    def run() -> None:
        follow()
        for one, work in zip(made, works):
            one.run(work)

    threading.Thread(target=run, daemon=True).start()
    return made
