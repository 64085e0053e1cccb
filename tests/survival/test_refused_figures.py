# SPDX-License-Identifier: Apache-2.0
"""Figures of /proc/self/io, which the kernel refuses to a process that has changed its user."""

from __future__ import annotations

import json
import os
import shutil

import pytest

PROGRAM = """
#include <unistd.h>
int main(void) {
  return setgid(65534) != 0 || setuid(65534) != 0 || write(1, "done", 4) != 4;
}
"""

# As many calls before and after that the trace needs room for their records.
WRITES = """
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  int fd = open("out", O_CREAT | O_WRONLY, 0666);
  for (int i = 0; i < 20000; ++i) write(fd, "line", 4);
  if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
  for (int i = 0; i < 20000; ++i) write(fd, "line", 4);
  return 0;
}
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


def test_figures_that_the_kernel_refuses_are_unknown_and_not_zero(weir, cc, tmp_path):
    program = cc(PROGRAM, "-w", name="becomes_another")
    weir("trace", "-o", "run", "--", program, cwd=tmp_path)
    done = weir("report", "run", "--json", cwd=tmp_path)
    (process,) = json.loads(done.stdout)["processes"]
    assert process["kernel_bytes_read"] is None, process
    assert process["kernel_bytes_written"] is None, process


def test_calls_lost_to_another_user_have_that_cause(weir, cc, tmp_path):
    """A budget or a full disk is not what kept the records out of the trace."""
    program = cc(WRITES, "-w", name="becomes_another")
    shutil.copy(program, tmp_path)  # a short command is printed whole
    weir("trace", "-o", "run", "--", f"./{program.name}", cwd=tmp_path)
    done = weir("report", "run", "--json", cwd=tmp_path)
    made = json.loads(done.stdout)
    (note,) = [one for one in made["notes"] if "calls have no record" in one]
    assert (
        made["lost_events"] > 0
        and "the process changed its user and may not open the trace any more" in note
    ), note
    assert f"becomes_another (pid {made['processes'][0]['pid']})" in note, note
    assert not [one for one in made["notes"] if "budget" in one or "disk" in one], made["notes"]
