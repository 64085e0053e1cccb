# SPDX-License-Identifier: Apache-2.0
"""Programs whose loader cannot load weir's library run as without weir, and are named."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** words) {
  FILE* f = fopen("out", "a");
  for (int i = 0; i < 100000; ++i) fputs("line\n", f);
  fclose(f);
  puts(getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
  return count + (words == NULL);
}
"""
WHY = "it is linked with another C library than glibc (/lib/ld-musl-"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """With the program `foreign`, and `script`, of which it is the interpreter."""
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc (Debian: musl-tools) makes programs of another C library")
    place = tmp_path_factory.mktemp("musl")
    (place / "p.c").write_text(PROGRAM)
    subprocess.run(["musl-gcc", "-o", "foreign", "p.c"], cwd=place, check=True)
    script = place / "script"
    script.write_text(f"#!{place}/foreign -x\n")
    script.chmod(0o755)
    (place / "r.toml").write_text('[[rule]]\nname = "*.none"\nstack = "event"\n')
    return place


@pytest.mark.parametrize(("program", "status"), [("./foreign", 1), ("./script", 3)])
def test_it_runs_without_layers_and_is_named(program, status, weir, directory):
    done = weir("run", "--rules", "r.toml", "--", program, cwd=directory)
    assert (done.returncode, done.stdout) == (status, "none\n")
    assert done.stderr.startswith(f"weir: {program}: its files had no layers: {WHY}")


def test_it_runs_without_a_trace_and_the_reason_is_said(weir, directory, tmp_run):
    done = weir("trace", "-o", tmp_run, "--", "./foreign", cwd=directory)
    assert (done.returncode, done.stdout) == (1, "none\n")
    assert f"no trace: ./foreign: {WHY}" in done.stderr


STARTS = {
    "execv": "os.execv('./foreign', ['f'])",
    "execvp": "os.environ['PATH'] = '.'; os.execvp('foreign', ['f'])",
    "execve": "os.execve('./script', ['f'], {**os.environ, 'LD_PRELOAD': "
              "os.environ['LD_PRELOAD'] + ':/none.so'})",
    "posix_spawn": "os.waitpid(os.posix_spawn('./foreign', ['f'], os.environ), 0)",
    "posix_spawnp": "os.environ['PATH'] = '.'\n"
                    "os.waitpid(os.posix_spawnp('foreign', ['f'], os.environ), 0)",
    "vfork": "import subprocess; subprocess.run(['./foreign'])",
    "shell": "os.system('./foreign')",
}


@pytest.mark.parametrize("how", STARTS)
def test_traced_programs_start_it_without_the_library(how, weir, directory, tmp_run):
    program = ["python3", "-c", "import os\n" + STARTS[how]]
    env = {"LD_PRELOAD": None} if "LD_PRELOAD" in os.environ else {}
    done = weir("trace", "-q", "-o", tmp_run, "--", *program, cwd=directory, env=env)
    left = "/none.so" if how == "execve" else "none"
    assert done.stdout == f"{left}\n" and "rror" not in done.stderr
    report = weir("report", tmp_run, "--tables", "processes").stdout
    assert "ld-musl-" in " ".join(report.split())
