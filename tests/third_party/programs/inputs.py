# SPDX-License-Identifier: Apache-2.0
"""Make the input files of the suite of tools: DIRECTORY; the same bytes and times in each run."""

import os
import random
import sys
from pathlib import Path

PROGRAM = """#include <stdio.h>
static int table[1000];
int main(void) {
  for (int i = 0; i < 1000; i++) table[i] = i * i;
  long sum = 0;
  for (int i = 0; i < 1000; i++) sum += table[i];
  printf("%ld\\n", sum);
  return 0;
}
"""


def main() -> None:
    top = Path(sys.argv[1])
    source = random.Random(11)
    for d in range(4):
        (top / f"d{d}").mkdir(parents=True)
        for f in range(60):
            size = source.choice([0, 1, 100, 4095, 4096, 4097, 20_000, 70_000])
            (top / f"d{d}" / f"f{f}").write_bytes(source.randbytes(size))
    (top / "big").write_bytes(source.randbytes(3_000_001))
    for name in ("lines", "lines2"):
        lines = [f"{source.randrange(10**9):x} {i}\n" for i in range(120_000)]
        (top / name).write_text("".join(lines))
    (top / "d3" / "text").write_text("".join(f"line {i}\n" for i in range(9000)))
    (top / "p.c").write_text(PROGRAM)
    with open(top / "sparse", "wb") as file:
        for at in (0, 1_000_000, 5_000_000):
            file.seek(at)
            file.write(source.randbytes(9000))
        file.truncate(8_000_000)
    (top / "link").symlink_to("big")
    for path in [*top.rglob("*"), top]:
        os.utime(path, (1e9, 1e9), follow_symlinks=False)


main()
