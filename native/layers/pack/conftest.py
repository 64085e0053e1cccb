# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

import pytest

RULES = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=out.zip:always=1|system\n"


@pytest.fixture
def as_without_layer(preload, tmp_path):
    """``as_without_layer(program)``: the Python program prints the same with *.dat packed and
    without a layer, each time in an empty directory; all archives are sound. What it printed."""
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    packed = {"LD_PRELOAD": str(preload), "WEIR_RULES": RULES, "WEIR_JOB": job}

    def run(program):
        printed = {}
        for pack in (False, True):
            place = tmp_path / str(pack)
            place.mkdir()
            printed[pack] = subprocess.run([sys.executable, "-c", "import os\n" + program],
                cwd=place, env={**os.environ, **(packed if pack else {})}, text=True, timeout=300,
                stdout=subprocess.PIPE, check=True).stdout
        assert printed[True] == printed[False] != ""
        for archive in (tmp_path / "True").rglob("out*.zip"):
            with zipfile.ZipFile(archive) as found:
                assert found.testzip() is None
        return printed[True]

    yield run
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
