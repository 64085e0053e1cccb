# SPDX-License-Identifier: Apache-2.0
"""Finding late-definitions: variables that netCDF-C adds to a file with data; all of them before;
and definitions in between of a file that has no data yet."""

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


# As netCDF4 for Python: each variable is defined in a definition of its own, before all data; the
# puts of records, which are no blocks, read and write the file again.
BEFORE_DATA = """
#include <netcdf.h>
#include <stdio.h>
static float x[3600];
int main(int argc, char **argv) {
  int file, dims[2], var[12], i, j;
  char name[20];
  if (nc_create(argv[1], NC_CLOBBER, &file)) return 1;
  nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]);
  nc_def_dim(file, "x", 3600, &dims[1]);
  nc_enddef(file);
  for (i = 0; i < 12; ++i) {
    sprintf(name, "v%d", i);
    if (nc_redef(file) || nc_def_var(file, name, NC_FLOAT, 2, dims, &var[i]) || nc_enddef(file))
      return 2;
  }
  for (j = 0; j < 10; ++j)
    for (i = 0; i < 12; ++i) {
      size_t start[2] = {j, 0}, count[2] = {1, 3600};
      if (nc_put_vara_float(file, var[i], start, count, x)) return 3;
    }
  return nc_close(file);
}
"""


def test_what_puts_write_again_is_not_of_definitions(weir, cc, testfs, tmp_path):
    place = testfs("direct", data_us=200)
    program = cc(BEFORE_DATA, "-lnetcdf")
    weir("trace", "-o", tmp_path / "run", "--", program, place.path / "out.nc").ok()
    report = advise_run(tmp_path / "run")
    assert "late-definitions" not in {one.finding for one in report.advices}
    [path] = report.facts.within_definitions
    file, inside = report.facts.files[path], report.facts.within_definitions[path]
    # it is called, and bytes are written again; but hardly any within its calls
    assert report.facts.called(file, ["nc_redef"]) == 12 and file.write.again > 0
    assert 0 < inside.bytes < file.write.span / 8 < file.read.bytes
