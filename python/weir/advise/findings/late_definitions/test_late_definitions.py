# SPDX-License-Identifier: Apache-2.0
"""Finding late-definitions: variables that netCDF-C adds to a file with data; and all of them
before."""

from __future__ import annotations

import pytest
from advised import advise_run

PROGRAM = """
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
static float x[1 << 16];
int main(int argc, char **argv) {
  int file, dim, var[8], is_late = argc > 2, i;
  char name[20];
  if (nc_create(argv[1], NC_CLOBBER, &file)) return 1;
  nc_set_fill(file, NC_NOFILL, &i);
  nc_def_dim(file, "x", 1 << 16, &dim);
  for (i = 0; i < 8; ++i) {
    sprintf(name, "v%d", i);
    if (is_late && i) nc_redef(file);
    if (nc_def_var(file, name, NC_FLOAT, 1, &dim, &var[i])) return 2;
    if (is_late && (nc_enddef(file) || nc_put_var_float(file, var[i], x))) return 3;
  }
  if (!is_late) nc_enddef(file);
  for (i = 0; !is_late && i < 8; ++i)
    if (nc_put_var_float(file, var[i], x)) return 3;
  return nc_close(file);
}
"""


@pytest.mark.parametrize("late", [[], ["late"]])
def test_data_that_move_behind_a_longer_header_are_found(weir, cc, testfs, tmp_path, late):
    place = testfs("direct", data_us=200)
    program = cc(PROGRAM, "-lnetcdf")
    weir("trace", "-o", tmp_path / "run", "--", program, place.path / "out.nc", *late).ok()
    found = {one.finding: one for one in advise_run(tmp_path / "run").advices}
    assert ("late-definitions" in found) == bool(late)
    if late:
        one = found["late-definitions"]
        # 7 times, all data that are there: 256 KiB * (1 + 2 + ... + 7), read and written
        assert "7 calls of nc_redef move" in one.sentence.replace("\u00a0", " ")
        assert "h_minfree" in one.change and one.rule is None
