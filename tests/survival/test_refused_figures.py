# SPDX-License-Identifier: Apache-2.0
"""Figures of /proc/self/io, which the kernel refuses to a process that has changed its user."""

from __future__ import annotations

import json
import os

import pytest

PROGRAM = """
#include <unistd.h>
int main(void) {
  return setgid(65534) != 0 || setuid(65534) != 0 || write(1, "done", 4) != 4;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_figures_that_the_kernel_refuses_are_unknown_and_not_zero(weir, cc, tmp_path):
    program = cc(PROGRAM, "-w", name="becomes_another")
    weir("trace", "-o", "run", "--", program, cwd=tmp_path)
    done = weir("report", "run", "--json", cwd=tmp_path)
    (process,) = json.loads(done.stdout)["processes"]
    assert process["kernel_bytes_read"] is None, process
    assert process["kernel_bytes_written"] is None, process
