# SPDX-License-Identifier: Apache-2.0
"""What weir asks of the kernel, in numbers of system calls: some at the start, hardly any per call,
a handful at the end."""

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
    """``phases(calls)``: extra system calls at the start, during that many calls of the program, at
    the end."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")

    def count(calls: int, variables: dict[str, str]) -> list[int]:
        log = tmp_path / "strace.log"
        added = [f"-E{name}={value}" for name, value in variables.items()]
        run(["strace", "-f", "-qq", "-o", log, *added, guest(CALLS), calls], cwd=tmp_path,
            env=clean_environment()).ok()
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
    """Beside the trace itself: each name takes some 20 bytes of tables; at level detail its
    counter's place is known, too."""
    program = guest(NAMES)

    def resident_bytes(names: int) -> int:
        env = {**clean_environment(), **preload_env(f"{level}{names}", level)}
        return 1024 * int(run([program, names], cwd=tmp_path, env=env).ok().stdout.split()[0])

    few, many = resident_bytes(1), resident_bytes(2000)
    assert many - few < 2000 * (116 if level == "detail" else 100)


FILES = """
int main(int argc, char** argv) {
  char name[64], data[512] = {0};
  for (int file = 0; file < atoi(argv[1]); ++file) {
    snprintf(name, sizeof name, "file.%06d", file);
    int fd = open_new(name);
    for (int i = 0; i < atoi(argv[2]); ++i) MUST(write(fd, data, sizeof data) == sizeof data);
    MUST(close(fd) == 0 && unlink(name) == 0);
  }
  return 0;
}
"""
PAGE = 4096


@pytest.fixture
def trace_bytes(guest, traced):
    """``trace_bytes(level, files, writes)``: size of the trace of a process that opens, writes,
    closes and removes files."""

    def measure(level: str, files: int, writes: int = 1) -> int:
        outcome = traced([guest(FILES), files, writes], level=level,
            step=f"{level}.{files}.{writes}")
        outcome.ok()
        (trace,) = outcome.directory.glob("*.weir")
        return trace.stat().st_size

    return measure


@pytest.mark.parametrize("level", ["detail", "summary"])
def test_a_process_of_few_files_has_a_trace_of_five_pages(trace_bytes, level):
    # the file's, the process', two of names, one of counters
    assert trace_bytes(level, 1) == 5 * PAGE
    assert trace_bytes(level, 3) == 5 * PAGE


def test_level_detail_grows_by_the_bytes_of_its_counters(trace_bytes):
    """64 bytes for each of four operations of a file; no histogram for each, no chunk half empty.
    """
    one, many = trace_bytes("detail", 1), trace_bytes("detail", 2000)
    names = trace_bytes("summary", 2000) - trace_bytes("summary", 1)
    counters = 2000 * 4 * 64
    assert counters <= many - one - names <= 1.15 * counters + PAGE
    assert trace_bytes("detail", 2000, 20) == many  # whatever the number of calls
