# SPDX-License-Identifier: Apache-2.0
"""job.json of a step: what was started, where, when, how it ended (docs/formats/trace.md 7)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """Every key may be missing in the file; what is missing or of the wrong type is None."""

    step: str | None = None
    command: tuple[str, ...] | None = None
    cwd: str | None = None
    level: str | None = None
    budget_bytes: int | None = None
    started_realtime_ns: int | None = None
    ended_realtime_ns: int | None = None
    exit_status: int | None = None
    weir: str | None = None
    # rchar and wchar of the command and of all that was waited for
    kernel_bytes: tuple[int, int] | None = None
    pid: int | None = None  # of the command
    user: str | None = None
    batch_system: str | None = None
    job_id: str | None = None


def read_job(path: str | os.PathLike[str]) -> tuple[Job | None, str | None]:
    """The job of a step, and what is wrong with its file; a file that is not there is not wrong."""
    try:
        with open(path, encoding="utf-8") as stream:
            raw = json.load(stream)
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, RecursionError) as error:
        return None, f"cannot be read: {error}"
    if not isinstance(raw, dict):
        return None, "is not a JSON object"
    if raw.get("format") != 1:
        return None, f"has format {raw.get('format')!r}, this version knows 1"
    command = raw.get("command")
    is_list = isinstance(command, list) and all(isinstance(word, str) for word in command)

    def typed(key: str, wanted: type) -> Any:
        value = raw.get(key)
        return value if isinstance(value, wanted) and not isinstance(value, bool) else None

    words_of = ("step", "cwd", "level", "weir", "user", "batch_system", "job_id")
    texts = {key: _text(typed(key, str)) for key in words_of}
    numbers = ("budget_bytes", "started_realtime_ns", "ended_realtime_ns", "exit_status", "pid")
    words = tuple(str(_text(word)) for word in command) if is_list else None
    figures = raw.get("kernel_bytes")
    is_pair = isinstance(figures, list) and len(figures) == 2 and all(isinstance(one, int)
        and 0 <= one < 2**63 for one in figures)
    pair = (figures[0], figures[1]) if is_pair else None
    return Job(command=words, kernel_bytes=pair, **texts,
        **{key: typed(key, int) for key in numbers}), None


def _text(value: str | None) -> str | None:
    """What was no UTF-8 in an argument or a directory's name, as the trace's names have it: \\xff.
    Such a text can be written anywhere."""
    if value is None or value.isascii():
        return value
    try:
        raw = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair, of which no byte was ever one
        raw = value.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")
