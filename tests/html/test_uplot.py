# SPDX-License-Identifier: Apache-2.0
"""tools/fetch-uplot with an npm that is only pretended: nothing is asked of any registry."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from weir._native import library_path
from weir.report.html.uplot import VERSION, uplot

NAMES = ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE")
# What `npm pack` leaves: package/dist and package/LICENSE in a tar file; the files are those of the
# directory $UPLOT.
NPM = f"""#!/usr/bin/env bash
echo "$*" >> "$UPLOT/asked"
mkdir -p package/dist && cp "$UPLOT"/uPlot.iife.min.js "$UPLOT"/uPlot.min.css package/dist && cp "$UPLOT"/uPlot.LICENSE package/LICENSE
tar -czf uplot-{VERSION}.tgz package && rm -r package
"""


@pytest.fixture
def registry(tmp_path) -> Path:
    """A directory with uPlot's files and, in bin, the npm that hands them out."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text(NPM)
    (tmp_path / "bin" / "npm").chmod(0o755)
    for name in NAMES:
        shutil.copy(library_path(name), tmp_path / name)
    return tmp_path


def fetch(execute, root: Path, registry: Path, directory: Path, path: str | None = None):
    path = path or f"{registry / 'bin'}:{os.environ['PATH']}"
    return execute([root / "tools" / "fetch-uplot", directory],
        env={"PATH": path, "UPLOT": str(registry)})


def test_it_fetches_once(execute, root, registry, tmp_path):
    for _ in range(2):
        fetch(execute, root, registry, tmp_path / "made").ok()
    assert sorted(one.name for one in (tmp_path / "made").iterdir()) == sorted(NAMES)
    assert (registry / "asked").read_text().split() == ["pack", "--silent", f"uplot@{VERSION}"]


def test_other_files_are_refused(execute, root, registry, tmp_path):
    with open(registry / NAMES[0], "a") as script:
        script.write("fetch('//elsewhere')")
    done = fetch(execute, root, registry, tmp_path / "made")
    assert done.returncode == 1 and "nothing is installed" in done.stderr
    assert list((tmp_path / "made").iterdir()) == []


def test_without_npm_it_says_what_to_do(execute, root, registry, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("bash", "env", "mkdir", "sha256sum"):
        (bare / tool).symlink_to(shutil.which(tool))
    done = fetch(execute, root, registry, tmp_path / "made", str(bare))
    assert done.returncode == 1 and "make install-deps" in done.stderr


def test_what_the_package_carries_is_that_version_with_its_licence():
    found = uplot()
    assert f"(v{VERSION})" in found.script
    assert "MIT License" in found.script and "Permission is hereby granted" in found.style
