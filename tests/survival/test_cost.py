# SPDX-License-Identifier: Apache-2.0
"""What weir asks of the kernel, in numbers of system calls: some at the start, hardly any per call, a handful at the end."""

import re
import shutil

import pytest
from weir_process import clean_environment, run

CALLS = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  long calls = atol(argv[1]);
  syscall(SYS_getpgid, 1111);
  for (long i = 0; i < calls; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  syscall(SYS_getpgid, 2222);
  return 0;
}
"""


@pytest.fixture
def phases(guest, preload_env, preload, tmp_path):
    """``phases(calls)``: extra system calls at the start, during that many calls of the program, at the end."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")

    def count(calls: int, variables: dict[str, str]) -> list[int]:
        log = tmp_path / "strace.log"
        added = [f"-E{name}={value}" for name, value in variables.items()]
        run(["strace", "-f", "-qq", "-o", log, *added, guest(CALLS), calls], cwd=tmp_path, env=clean_environment()).ok()
        parts = re.split(r".*getpgid\((?:1111|2222)\).*\n", log.read_text())
        assert len(parts) == 3, log.read_text()[:2000]
        return [part.count("\n") for part in parts]

    def extra(calls: int, level: str = "trace") -> list[int]:
        env = preload_env(level, level)
        count(1, env)  # makes the file
        return [a - b for a, b in zip(count(calls, env), count(calls, {}))]

    return extra


def test_the_end_of_a_program_costs_a_handful(phases):
    start, _, end = phases(1)
    assert start < 70
    assert 0 < end <= 6  # the kernel's figures of the process; nothing is written out


@pytest.mark.parametrize("level", ["trace", "detail", "summary"])
def test_the_cost_during_the_program_does_not_grow_with_its_calls(phases, level):
    few, many = phases(1000, level)[1], phases(8000, level)[1]
    assert few <= 60
    assert many <= few + 80  # chunks double


NAMES = """
int main(int argc, char** argv) {
  char name[64], line[256];
  for (int i = 0; i < atoi(argv[1]); ++i) {
    snprintf(name, sizeof name, "file.%d", i);
    MUST(access(name, F_OK) == -1);
  }
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) {
    if (strncmp(line, "RssAnon:", 8) == 0) printf("%s", line + 8);
  }
  return 0;
}
"""


@pytest.mark.parametrize("level", ["trace", "detail", "summary"])
def test_memory_grows_by_the_bytes_of_names_and_not_by_pages(guest, preload_env, tmp_path, level):
    """Beside the trace itself: each name takes some 20 bytes of tables; at level detail its counter's place is known, too."""
    program = guest(NAMES)

    def resident_bytes(names: int) -> int:
        env = {**clean_environment(), **preload_env(f"{level}{names}", level)}
        return 1024 * int(run([program, names], cwd=tmp_path, env=env).ok().stdout.split()[0])

    few, many = resident_bytes(1), resident_bytes(2000)
    assert many - few < 2000 * (150 if level == "detail" else 100)
