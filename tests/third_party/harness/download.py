# SPDX-License-Identifier: Apache-2.0
"""Gets what suites need from Debian and PyPI, by name; trees of sources are the user's to provide.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from harness.model import Suite


def debian_packages_missing(suites: Iterable[Suite]) -> list[str]:
    """The Debian packages that these suites need and this machine does not have."""
    wanted = sorted({package for suite in suites for package in suite.packages})
    command = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    have = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in wanted if package not in have]


def _pip(python: Path, *arguments: str) -> str:
    """Run pip; the last line of what it says if it fails, "" otherwise."""
    command = [str(python), "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def prepare_python(suite: Suite, build: Path) -> str:
    """Install the packages of PyPI that a suite needs, and unpack its source packages; why it
    failed, or ""."""
    if not suite.wheels and not suite.sdists:
        return ""
    venv = build / "venv"
    stamp = build / "stamps" / f"{suite.name}.wheels"
    if not (venv / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    wanted = " ".join(suite.wheels)
    if suite.wheels and not (stamp.exists() and stamp.read_text() == wanted):
        if problem := _pip(venv / "bin" / "python", "install", *suite.wheels):
            return f"pip: {problem}"
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(wanted)
    for requirement in suite.sdists:
        if problem := _unpack_sdist(requirement, venv / "bin" / "python", build / "sdists"):
            return f"pip: {problem}"
    return ""


def _unpack_sdist(requirement: str, python: Path, directory: Path) -> str:
    """The source package NAME==VERSION of PyPI as directory/NAME; why it failed, or ""."""
    name = requirement.split("==")[0]
    if (directory / name).exists():
        return ""
    # what builds it may be a wheel, so that pip can read its metadata
    arguments = ("download", "--no-deps", "--no-binary", name)
    if problem := _pip(python, *arguments, "-d", str(directory), requirement):
        return problem
    archive = next(p for p in directory.glob("*.tar.gz") if p.name.lower().startswith(name.lower()))
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
        top = packed.getnames()[0].split("/")[0]
    (directory / top).rename(directory / name)
    return ""
