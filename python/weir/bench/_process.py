# SPDX-License-Identifier: Apache-2.0
"""Runs one program to its end, or kills all of it when its time is over."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from weir._errors import Error


class RunFailed(Error, RuntimeError):
    """A program that was to be measured did not succeed; the message is the last that it said."""


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float) -> str:
    """Its standard output. Raises RunFailed."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            output, complaint = process.communicate(timeout=timeout_s)
        except BaseException as error:
            # The session, as mpirun's tasks and the helpers of a layer are not children of ours.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise RunFailed(f"ran longer than {timeout_s:.0f} s and was killed: {_short(command)}") from error
            raise
    if process.returncode != 0:
        said = [line for line in complaint.strip().splitlines() + output.strip().splitlines() if line.strip()]
        why = next((line for line in said if line.startswith("error: ")), said[-1] if said else "it said nothing")
        raise RunFailed(f"status {process.returncode}: {why.strip()} ({_short(command)})")
    return output


def _short(command: Sequence[str]) -> str:
    text = shlex.join(command)
    return text if len(text) < 400 else text[:400] + " ..."


def numbers(text: str, name: str) -> dict[str, float]:
    """The program's line of results, ``NAME: key=number ...``. Raises RunFailed when there is none."""
    for line in text.splitlines():
        if line.startswith(f"{name}: ") and "=" in line:
            return {k: float(v) for k, v in (word.split("=", 1) for word in line[len(name) + 2 :].split())}
    raise RunFailed(f"{name} printed no line of results")
