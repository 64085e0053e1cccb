# SPDX-License-Identifier: Apache-2.0
"""Streams as programs use them: random calls at every level, fortified programs, C++ streams,
streams shared with children."""

from __future__ import annotations

import collections
import random
from pathlib import Path

import pytest
from decode import NESTED, read_trace

PROGRAMS = Path(__file__).parent / "programs"
MOVING = ("fread", "fwrite", "getline", "fgetc", "fputc", "fputs", "fprintf")


def counted(stdout: str) -> dict[tuple[str, str], tuple[int, int]]:
    """(operation, file) to (calls, bytes), as the program says."""
    rows = (line.split() for line in stdout.splitlines() if line.startswith("count"))
    return {(op, file): (int(calls), int(size)) for _, op, file, calls, size in rows
        if calls != "0"}


def traced(trace, directory: Path, by_file: bool) -> dict[tuple[str, str], tuple[int, int]]:
    sums = collections.Counter()
    sizes = collections.Counter()
    for r in trace.records:
        if r.layer == "stdio" and r.file.startswith(str(directory)):
            key = (r.op, Path(r.file).name if by_file else "")
            sums[key] += 1
            sizes[key] += 0 if r.failed or r.op not in MOVING else r.size
    for c in trace.counters:
        if c.layer == "stdio" and (not by_file or c.file.startswith(str(directory))):
            key = (c.op, Path(c.file).name if by_file else "")
            sums[key] += c.calls
            sizes[key] += c.bytes if c.op in MOVING else 0
    return {key: (sums[key], sizes[key]) for key in sums}


def merged(counts: dict[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str],
        tuple[int, int]]:
    """The same over all files."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for (op, _), (calls, size) in counts.items():
        before = sums.get((op, ""), (0, 0))
        sums[op, ""] = (before[0] + calls, before[1] + size)
    return sums


@pytest.mark.parametrize("level", ["trace", "detail", "summary"])
def test_random_calls_are_counted_exactly_and_change_nothing(level, cc, execute, preload_env,
        tmp_path):
    program = cc((PROGRAMS / "random_stdio.c").read_text(), "-pthread", name="random_stdio")
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    ran = {}
    for kind, env in (("bare", {}), ("seen", preload_env(level=level))):
        directory = tmp_path / kind
        directory.mkdir()
        done = execute([program, seed, 4, 3000], cwd=directory, env=env).ok()
        ran[kind] = (done.stdout, {f.name: f.read_bytes() for f in directory.iterdir()})
    assert ran["seen"] == ran["bare"]
    trace = read_trace(tmp_path / "run" / "main")
    expected = counted(ran["seen"][0])
    found = traced(trace, tmp_path / "seen", by_file=level != "summary")
    if level == "summary":  # the program's own output on no file of ours is in these sums
        found.pop(("fprintf", ""), None)
        expected = {key: value for key, value in merged(expected).items() if key[0] != "fprintf"}
    assert len(expected) >= 11
    assert {key: found.get(key) for key in expected} == expected


FORTIFIED = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
int main(int count, char **arguments) {
  char text[32];
  wchar_t wide[32];
  volatile size_t n = 5;  /* unknown to the compiler, so that the checked forms are used */
  FILE *f = fopen("data", "w+");
  fprintf(f, "%s %d\n", arguments[0] ? "number" : "", 42);
  fprintf(f, "plain text\n");
  rewind(f);
  fread(text, 1, n, f);
  fgets(text, (int)n, f);
  fclose(f);
  f = fopen("data", "r");
  fgetws(wide, (int)n, f);
  fclose(f);
  const int fd = open("data", O_RDWR);
  read(fd, text, n);
  pread(fd, text, n, 2);
  dprintf(fd, "%d", 7);
  close(fd);
  printf("%d\n", count);
  return 0;
}
"""


def test_fortified_programs_are_seen_in_the_same_words(cc, execute, preload_env, tmp_path):
    program = cc(FORTIFIED, "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", name="fortified")
    symbols = execute(["nm", "-D", program]).ok().stdout
    for form in ("__fprintf_chk", "__fread_chk", "__fgets_chk", "__fgetws_chk", "__read_chk",
            "__pread_chk", "__dprintf_chk"):
        assert form in symbols, "the compiler made other calls of it"
    env = preload_env()
    execute([program], env=env, cwd=tmp_path).ok()
    seen = [(r.op, r.size) for r in read_trace(env["WEIR_TRACE_DIR"]).of(file=tmp_path / "data")]
    assert seen == [
        ("fopen", 0), ("fprintf", 10), ("fwrite", 11), ("rewind", 0), ("fread", 5), ("fgets", 4),
        ("fclose", 0),
        ("fopen", 0), ("fgets", 4), ("fclose", 0),
        ("open", 0), ("read", 5), ("pread", 5), ("dprintf", 1), ("close", 0),
    ]  # fmt: skip


CPP = r"""
#include <fstream>
#include <iostream>
#include <string>
int main() {
  std::ofstream out("data");
  for (int i = 0; i < 5000; ++i) out << i << '\n';
  out.close();
  std::ifstream in("data");
  long sum = 0;
  for (std::string line; std::getline(in, line);) sum += std::stol(line);
  std::cout << sum << std::endl;
}
"""


def test_streams_of_cpp_are_a_stream_with_a_followed_descriptor(cxx, execute, preload_env,
        tmp_path):
    program = cxx(CPP, name="cpp_streams")
    env = preload_env()
    assert execute([program], env=env, cwd=tmp_path).ok().stdout == "12497500\n"
    records = read_trace(env["WEIR_TRACE_DIR"]).of(file=tmp_path / "data")
    size = (tmp_path / "data").stat().st_size
    assert [r.op for r in records if r.layer == "stdio"] == ["fopen", "fclose", "fopen", "fclose"]
    for op in ("write", "read"):
        moved = [r for r in records if r.op.startswith(op)]
        assert sum(r.size for r in moved) == size
        assert [r.offset for r in moved] == [sum(r.size for r in moved[:i])
            for i in range(len(moved))]


CHILDREN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  char line[64];
  FILE *f = fopen("data", "w");
  fputs("before\n", f);
  fflush(f);
  for (int i = 0; i < 3; ++i) {
    if (fork() == 0) {
      fprintf(f, "child %d\n", i);
      exit(0);
    }
    wait(NULL);
  }
  fclose(f);
  FILE *p = popen("cat data", "r");
  int lines = 0;
  while (fgets(line, sizeof line, p)) ++lines;
  printf("%d %d\n", lines, pclose(p));
  return 0;
}
"""


def test_children_that_inherit_a_stream_have_its_name(cc, execute, preload_env, tmp_path):
    program = cc(CHILDREN, "-fno-builtin", name="stream_children")
    env = preload_env()
    assert execute([program], env=env, cwd=tmp_path).ok().stdout == "4 0\n"
    trace = read_trace(env["WEIR_TRACE_DIR"])
    assert [(r.op, r.size) for r in trace.of(file=tmp_path / "data", layer="stdio")] == [
        ("fopen", 0), ("fputs", 7), ("fflush", 0), *[("fprintf", 8)] * 3, ("fclose", 0),
    ]  # fmt: skip
    writers = {r.process for r in trace.of("fprintf", file=tmp_path / "data")}
    assert len(writers) == 3 and all(trace.processes[number].parent for number in writers)
    cat = [p.number for p in trace.processes.values() if p.command == ["cat", "data"]]
    assert sum(r.size for r in trace.of(file=tmp_path / "data") if r.process in cat
        and r.op == "read") == 7 + 3 * 8


COOKIE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static ssize_t put(void *cookie, const char *from, size_t n) { return write(*(int *)cookie, from, n); }
int main(void) {
  int fd = open("data", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  FILE *f = fopencookie(&fd, "w", (cookie_io_functions_t){NULL, put, NULL, NULL});
  fputs("abc", f);
  fflush(NULL);
  fputs("def", f);
  fclose(f);
  return close(fd);
}
"""


def test_calls_of_a_cookie_stream_are_the_programs_own(cc, execute, preload_env, tmp_path):
    env = preload_env()
    execute([cc(COOKIE, name="cookie")], env=env, cwd=tmp_path).ok()
    writes = read_trace(env["WEIR_TRACE_DIR"]).of("write", file=tmp_path / "data")
    assert [(r.size, r.offset, r.flags) for r in writes] == [(3, 0, NESTED), (3, 3, 0)]
