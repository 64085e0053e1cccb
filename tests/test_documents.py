# SPDX-License-Identifier: Apache-2.0
"""The commands that the documents show as runnable do run: fenced blocks that begin with ```sh
runnable.

The blocks of one document run in order in one shell, in an empty directory that holds `model`, a
small MPI program that writes and reads a file, with weir and Open MPI's mpirun as the commands of
these names. A document that asks questions of `demo-run` finds a small one there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from weir_mpi import IMPLEMENTATIONS
from weir_sources import text_files

MODEL_C = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank;
  char name[32], line[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "field.%d", rank);
  FILE *f = fopen(name, "w+");
  for (int i = 0; i < 100; i++) fprintf(f, "value %d\\n", i);
  rewind(f);
  while (fgets(line, sizeof line, f)) {}
  fclose(f);
  return MPI_Finalize();
}
"""


def runnable_blocks(text: str) -> list[str]:
    return re.findall(r"^```sh runnable\n(.*?)^```$", text, re.M | re.S)


DOCUMENTS = {str(name): blocks for name, text in text_files() if name.suffix == ".md"
    and (blocks := runnable_blocks(text))}


@pytest.fixture(scope="module")
def small_demo(root, native_build, tmp_path_factory, execute) -> Path:
    """A directory with demo-run as `make demo` leaves it, of the workload's smallest sizes on 2
    ranks."""
    programs = native_build / "workloads" / "4dvar"
    if not (programs / "openmpi" / "weir-4dvar").exists():
        pytest.skip("the 4dvar workload was not built")
    here = tmp_path_factory.mktemp("demo")
    command = [root / "workloads" / "4dvar" / "run", "--tiny", "--ranks", "2", "--mpi", "openmpi",
        "--bin", programs]
    command += ["--work", here / "build" / "demo", "--weir", here / "demo-run"]
    execute(command, env=IMPLEMENTATIONS["openmpi"].env, cwd=here, timeout=170).ok()
    return here


@pytest.mark.mpi
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_of_the_document_run(name, request, tmp_path, execute):
    openmpi = IMPLEMENTATIONS["openmpi"]
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "mpirun").write_text(f'#!/bin/sh\nexec {" ".join(openmpi.launcher)} "$@"\n')
    (commands / "mpirun").chmod(0o755)
    here = tmp_path / "here"
    if any("demo-run" in block for block in DOCUMENTS[name]):
        shutil.copytree(request.getfixturevalue("small_demo"), here, symlinks=True)
    else:
        here.mkdir()
    (here / "model").symlink_to(openmpi.cc(MODEL_C, name="model"))
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    script = "set -euxo pipefail\n" + "\n".join(DOCUMENTS[name])
    execute(["bash", "-c", script], env={**openmpi.env, "PATH": path}, cwd=here, timeout=120).ok()


def test_python_reads_members_of_an_archive_as_the_guide_shows(weir, root, tmp_path):
    pytest.importorskip("xarray")
    pytest.importorskip("fsspec")
    pytest.importorskip("scipy")
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nname = "plot_*"\nstack = "pack:name=plots.zip:always=1"\n')
    write = ("import xarray; xarray.Dataset({'t': ('x', [1, 2, 3])}).to_netcdf('part', "
             "engine='scipy'); open('plot_0001', 'wb').write(open('part', 'rb').read())")
    weir("run", "--rules", "rules.toml", "--", sys.executable, "-c", write, cwd=tmp_path).ok()
    guide = (root / "docs/guide/pack.md").read_text()
    (shown,) = re.findall(r"^    import fsspec\n(?:    .*\n)+", guide, re.M)
    code = textwrap.dedent(shown) + "print(data.t.values.tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True,
        text=True, timeout=300, check=False)
    assert done.stdout == "[1, 2, 3]\n", done.stderr


def test_blocks_are_found_and_only_the_marked_ones():
    text = "```sh runnable\na\nb\n```\n\n```sh\nc\n```\n```sh runnable\nd\n```\n"
    assert runnable_blocks(text) == ["a\nb\n", "d\n"]
