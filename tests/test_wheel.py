# SPDX-License-Identifier: Apache-2.0
"""The wheel that pip builds: complete, for every Python, and working without the source tree."""

from __future__ import annotations

import sys
import zipfile
from shutil import which

import pytest
from weir_process import run
from weir_sources import ROOT

# The flags of make build: the compiler's cache has those objects.
AS_BUILT = {
    "CC": "cc",
    "CXX": "c++",
    "SKBUILD_CMAKE_BUILD_TYPE": "RelWithDebInfo",
    "SKBUILD_CMAKE_DEFINE": "WEIR_WERROR=ON;WEIR_TESTS=OFF;WEIR_WORKLOADS=OFF",
    "SKBUILD_INSTALL_STRIP": "true",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w",
            directory, ROOT],
        env={"SKBUILD_BUILD_DIR": str(ROOT / "build" / "wheel-test"), "SKBUILD_WHEEL_CMAKE": None,
            **(AS_BUILT if which("ccache") else {})},
        timeout=1100,
    ).ok()
    (path,) = directory.glob("*.whl")
    return path


def test_it_carries_libraries_and_licence_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"weir/_lib/libweir-preload.so", "weir/_lib/libweir-reader.so", "weir/_lib/layers.json",
        "weir/cli/__init__.py"} <= names
    assert {"weir/_lib/uPlot.iife.min.js", "weir/_lib/uPlot.LICENSE",
        "weir/report/html/assets/page.j2"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert [name for name in names if "/test_" in name] == []


def test_one_wheel_serves_every_python_of_the_platform(wheel):
    assert "-py3-none-linux_" in wheel.name


def test_it_works_without_the_source_tree(wheel, tmp_path):
    target = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(target)
    (tmp_path / "run.sh").write_text("cat /etc/hostname > copy\n")
    python = [sys.executable, "-I", "-c"]
    load = (
        f"import sys; sys.path.insert(0, {str(target)!r}); from weir.cli import main; "
        f"sys.exit(main())"
    )
    command = [*python, load]
    run([*command, "trace", "-o", "run", "--", "bash", "run.sh"], cwd=tmp_path).ok()
    report = run([*command, "report", "run", "--json"], cwd=tmp_path).ok()
    assert '"complete": true' in report.stdout
