# SPDX-License-Identifier: Apache-2.0
"""Finding header-rewrites: nc_sync behind each record, and once."""

from __future__ import annotations

import pytest
from advised import advise_run

PROGRAM = """
#include <netcdf.h>
#include <stdlib.h>
static float x[1000];
int main(int argc, char **argv) {
  int file, dims[2], var, is_often = argc > 2;
  const size_t count[2] = {1, 1000};
  if (nc_create(argv[1], NC_CLOBBER, &file)) return 1;
  nc_def_dim(file, "t", NC_UNLIMITED, &dims[0]);
  nc_def_dim(file, "x", 1000, &dims[1]);
  if (nc_def_var(file, "v", NC_FLOAT, 2, dims, &var) || nc_enddef(file)) return 2;
  for (size_t t = 0; t < 300; ++t) {
    const size_t at[2] = {t, 0};
    if (nc_put_vara_float(file, var, at, count, x)) return 3;
    if (is_often && nc_sync(file)) return 4;
  }
  return nc_close(file);
}
"""


@pytest.mark.parametrize("often", [[], ["often"]])
def test_a_sync_behind_each_record_is_found(weir, cc, testfs, tmp_path, often):
    place = testfs("direct", data_us=500)
    program = cc(PROGRAM, "-lnetcdf")
    weir("trace", "-o", tmp_path / "run", "--", program, place.path / "out.nc", *often).ok()
    found = {one.finding: one for one in advise_run(tmp_path / "run").advices}
    assert ("header-rewrites" in found) == bool(often)
    if often:
        one = found["header-rewrites"]
        assert "300 calls of nc_sync" in one.sentence.replace("\u00a0", " ")
        assert 0 < one.saving.io.low < one.saving.io.high and one.rule is None
