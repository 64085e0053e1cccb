# SPDX-License-Identifier: Apache-2.0
"""Marks of phases from C, C++, Fortran and Python: recorded under the preload library, nothing
without it."""

from __future__ import annotations

import json
import sys

import pytest

C = r"""
#include <stdio.h>
int main(void) {
  for (int i = 0; i < 3; i++) {
    weir_phase_begin("9write");
    FILE *f = fopen("out", "w");
    fputs("text", f);
    fclose(f);
    weir_phase_end("9write");
  }
  weir_phase_begin(0);
  weir_phase_end("");
  return 0;
}
"""
FORTRAN = r"""
program phases
  use weir_phase
  implicit none
  integer :: i, unit
  do i = 1, 3
    call weir_phase_begin("9write  ")
    open(newunit=unit, file="out", status="replace")
    write(unit, *) i
    close(unit)
    call weir_phase_end("9write")
  end do
end program phases
"""
PYTHON = """
from weir.phase import phase
from weir.report.routines.compute import routines_of
for _ in range(3):
    with phase("9write"):
        open("out", "w").write("text")
"""


@pytest.fixture(params=["c", "c++", "fortran", "python"])
def client(request, cc, cxx, fc, root):
    """A command that goes three times through the phase 9write and writes in it."""
    # as text: compiled anew when it changes
    header = (root / "include" / "weir" / "phase.h").read_text()
    if request.param == "c":
        return [cc(header + C, "-Wall", "-Wextra", "-Werror", "-std=c99")]
    if request.param == "c++":
        return [cxx(header + C, "-Wall", "-Wextra", "-Werror")]
    if request.param == "fortran":
        return [fc((root / "fortran" / "weir_phase.f90").read_text() + FORTRAN, "-Wall", "-Werror")]
    return [sys.executable, "-c", PYTHON]


def test_without_the_library_a_client_does_nothing(client, execute, tmp_path):
    done = execute(client, cwd=tmp_path).ok()
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "out").is_file()


def test_the_marks_of_a_program_become_its_phases(client, execute, weir, preload_env, tmp_path):
    env = preload_env("s")
    execute(client, env=env, cwd=tmp_path).ok()
    report = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    [one] = report["phases"]
    assert (one["phase"], one["times"], one["ranks"], one["source"]) == ("9write", 3, 1, "marks")
    assert 0 < one["io_s"] <= one["max_s"] == one["min_s"]
    assert "9write" in weir("report", tmp_path / "run", "--tables", "phases").ok().stdout


def test_marks_need_no_records(cc, root, execute, preload_env, tmp_path):
    """At level detail they are counted as any call, and in no total."""
    env = preload_env("s", level="detail")
    execute([cc((root / "include" / "weir" / "phase.h").read_text() + C)], env=env,
        cwd=tmp_path).ok()
    from weir.report import build
    from weir.report.routines.compute import routines_of

    step = build(tmp_path / "run").steps[0]
    counted = step.data.columns
    marks = counted.where(counted.layer == 0)
    assert sorted(zip(marks.op.tolist(), marks.calls.tolist()))[:1] == [(252, 3)]
    assert step.all.calls == sum(row.calls for row in routines_of(step).rows)
    assert not any("phase" in row.routine for row in routines_of(step).rows)


def test_a_name_with_a_zero_byte_is_refused_in_python():
    from weir.phase import begin

    with pytest.raises(ValueError, match="no zero byte"):
        begin("a\0b")
