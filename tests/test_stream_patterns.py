# SPDX-License-Identifier: Apache-2.0
"""Access patterns of C streams: the trace has no offsets of their transfers; they follow from opens
and seeks."""

from __future__ import annotations

from weir.report import build
from weir.report.patterns.compute import patterns_by_rank

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static char data[65536];
static FILE *open_as(const char *path, const char *mode) {
  FILE *f = fopen(path, mode);
  if (!f) exit(1);
  return f;
}
int main(void) {
  FILE *f = open_as("sequential", "w");
  for (int i = 0; i < 10; ++i) fwrite(data, 1, 4096, f);  // one first, nine adjacent
  fprintf(f, "%s\n", "text");                             // adjacent
  fclose(f);

  f = open_as("seeks", "w+");
  for (int i = 0; i < 16; ++i) fwrite(data, 1, 4096, f);
  rewind(f);
  for (int i = 0; i < 4; ++i) {  // 1024 at 0, 8192, 16384, 24576
    fread(data, 1, 1024, f);
    fseek(f, 7168, SEEK_CUR);
  }
  fseek(f, -4096, SEEK_END);  // at 61440
  fread(data, 1, 96, f);
  fgetc(f);                   // adjacent, at 61536
  ftell(f);
  fread(data, 1, 10, f);      // adjacent, at 61537
  fclose(f);

  f = open_as("appended", "a");
  fwrite(data, 1, 100, f);
  fseek(f, 0, SEEK_SET);
  fwrite(data, 1, 100, f);
  fclose(f);

  f = open_as("twice", "w");
  FILE *other = open_as("twice", "r");
  fwrite(data, 1, 100, f);
  fflush(f);
  fread(data, 1, 50, other);
  fclose(other);
  fclose(f);
  f = open_as("twice", "r");  // one again
  fread(data, 1, 100, f);
  fclose(f);
  return 0;
}
"""


def test_transfers_of_streams_have_offsets(cc, preload_env, tmp_path, execute):
    env = preload_env()
    execute([cc(PROGRAM)], env=env, cwd=tmp_path).ok()
    rows = {(row["file"].rpartition("/")[2], row["way"]): row
        for row in patterns_by_rank(build(env["WEIR_TRACE_DIR"]))}
    classes = ("first", "adjacent", "strided", "random", "unknown", "off_block", "begin", "end")

    def found(file: str, way: str) -> tuple[int, ...]:
        return tuple(rows[file, way][key] for key in classes)

    assert found("sequential", "write") == (1, 10, 0, 0, 0, 0, 0, 40965)
    assert found("seeks", "write") == (1, 15, 0, 0, 0, 0, 0, 65536)
    assert found("seeks", "read") == (1, 2, 3, 1, 0, 2, 0, 61547)
    assert rows["seeks", "read"]["strides"] == ("7168x3", "35840x1")
    assert found("appended", "write") == (0, 0, 0, 0, 2, 0, 0, 0)
    assert found("twice", "write") == (0, 0, 0, 0, 1, 0, 0, 0)
    assert found("twice", "read") == (1, 0, 0, 0, 1, 0, 0, 100)
