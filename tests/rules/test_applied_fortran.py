# SPDX-License-Identifier: Apache-2.0
"""Rules for Fortran units and kinds of files, seen in a gfortran program: where a rule matches,
nothing reaches the file."""

from __future__ import annotations

import pytest

NO_OTHERS = {"FILENV": None, "IOBUF_PARAMS": None, "MPICH_MPIIO_HINTS": None}
FAILS = "error:op=write:errno=ENOSPC"

# A file of each kind, each written once; gfortran says nothing of a flush that fails, so the files'
# sizes tell.
FORTRAN = """
program w
  implicit none
  open(60, file='sequential.unformatted', form='unformatted', access='sequential')
  write(60) 1.0d0
  open(61, file='sequential.formatted')
  write(61, '(a)') 'line'
  open(62, file='direct.unformatted', access='direct', recl=8)
  write(62, rec=1) 1.0d0
  open(63, file='direct.formatted', form='formatted', access='direct', recl=8)
  write(63, '(a8)', rec=1) 'line'
  open(64, file='stream.unformatted', access='stream')
  write(64) 1.0d0
  write(65, '(a)') 'line'
end program
"""
FILES = [
    "sequential.unformatted", "sequential.formatted", "direct.unformatted", "direct.formatted",
    "stream.unformatted", "fort.65",
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "failing"),
    [
        ("u:61", FILES[1:2]),
        ("u:65", FILES[5:]),
        ("u:70", []),
        ("g:su", FILES[:1]),
        ("g:sf", [FILES[1], FILES[5]]),
        ("g:du", FILES[2:3]),
        ("g:df", FILES[3:4]),
        ("--access stream g:all", FILES[4:5]),
        ("--form unformatted --unit 62-64 g:all", [FILES[2], FILES[4]]),
        ("g:all", FILES),
    ],
)
def test_units_and_kinds_of_fortran_files(weir, fc, tmp_path, rule, failing):
    if fc.missing():
        pytest.skip("no gfortran on this machine")
    (tmp_path / "rules").write_text(f"assign -F {FAILS} {rule}\n")
    done = weir("run", "--rules", "rules", "--", fc(FORTRAN, name="fortran"), cwd=tmp_path,
        env=NO_OTHERS)
    assert [name for name in FILES if (tmp_path / name).stat().st_size == 0] == failing, done.stderr
