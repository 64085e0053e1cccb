# SPDX-License-Identifier: Apache-2.0
"""Compiling the small programs of tests, each once: build/testprograms/<hash of all that
matters>/<name>."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from weir_process import run

CACHE = Path(__file__).resolve().parents[2] / "build" / "testprograms"
_SOURCES = (".c", ".cc", ".f90", ".F90", ".h")


class Compiler:
    """A compiler driver; calling it compiles one source text to a program.

    ``compiler(source, *flags, name="program")``; ``source`` is text, or a Path to a file. Flags
    come behind the source, so that libraries may be among them. Raises AssertionError with the
    compiler's messages.
    """

    def __init__(self, driver: str, suffix: str, default_flags: tuple[str, ...] = ("-O1", "-g")):
        self.driver = driver
        self.suffix = suffix
        self.default_flags = default_flags

    def missing(self) -> bool:
        return shutil.which(self.driver) is None

    def __call__(self, source: str | Path, *flags: str, name: str = "program") -> Path:
        text = source.read_text() if isinstance(source, Path) else source
        driver_path = shutil.which(self.driver)
        assert driver_path, f"no {self.driver} on this machine: run `make install-deps`"
        parts = [os.path.realpath(driver_path), self.driver, self.suffix, *self.default_flags, "--",
            *flags, "--", text]
        parts += [Path(flag).read_text() for flag in flags if flag.endswith(_SOURCES)]
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        directory = CACHE / key
        if not (directory / name).exists():
            self._compile(text, flags, name, directory)
        return directory / name

    def _compile(self, text: str, flags: tuple[str, ...], name: str, directory: Path) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as scratch:
            source = Path(scratch) / f"{name}{self.suffix}"
            source.write_text(text)
            run(
                [self.driver, *self.default_flags, "-o", Path(scratch) / name, source, *flags],
                timeout=120, cwd=scratch
            ).ok()
            directory.mkdir(exist_ok=True)
            # Source first, program last and by rename: whoever finds the program finds it whole.
            os.replace(source, directory / source.name)
            os.replace(Path(scratch) / name, directory / name)
