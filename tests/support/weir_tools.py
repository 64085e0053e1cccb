# SPDX-License-Identifier: Apache-2.0
"""Programs of others that judge files of GRIB, and what they are compared with."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest


def tool(*command: object) -> str:
    """What the command has printed; skips the test where it is not installed."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
        timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def gaussian(n: int) -> list[float]:
    """Latitudes from north to south, by numpy's roots of Legendre polynomials."""
    return np.degrees(np.arcsin(np.polynomial.legendre.leggauss(2 * n)[0]))[::-1].tolist()
