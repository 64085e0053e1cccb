# SPDX-License-Identifier: Apache-2.0
"""Programs that make system calls by libc's syscall() get under layers and in a trace what libc's
function of each call gives them."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from decode import read_trace
from weir_sources import ROOT

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64",
    reason="syscall() is hooked on x86-64 alone")

HOOK = ROOT / "native" / "hook"
PROGRAMS = ROOT / "tests" / "layers" / "programs"
STACKS = {
    "bufa": "bufa:1:2:always=1|system",
    "bufa usual": "bufa:256:2|system",
    "global": "global:65536:4:always=1|system",
    "gather": "gather:65536:4:always=1|system",
    "keep": "keep:always=1|system",
}
# Layers under which other results than those of a plain run are stated: mmap of a blocked file, its
# bytes.
OTHERS = {"cos": "cos|system"}
# Hooks of libc that bear a system call's name, and are not made by number.
ELSEWHERE = {
    "execve": "a child of SYS_vfork, which has its parent's memory, may be the one that makes it",
    "execveat": "as execve",
    "exit": "hooked for libgfortran; the system call ends one thread",
    "umask": "followed for the modes of packed files; a call by number is not seen",
    "vfork": "passed on by a jump: it returns twice",
}


def numbers() -> set[str]:
    """The hooks of table_numbers.def."""
    rows = (HOOK / "table_numbers.def").read_text()
    return set(re.findall(r"^WEIR_NUMBER\(\w+, (\w+)\)", rows, re.M)) | set(
        re.findall(r"^WEIR_NUMBER_AS\(\w+, [^,]+, (\w+),", rows, re.M)
    )


def test_each_hook_that_bears_the_name_of_a_system_call_has_its_number():
    hooks = set(re.findall(r"^WEIR_HOOKED\((\w+), c,", (HOOK / "table.def").read_text(), re.M))
    done = subprocess.run(["gcc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
        capture_output=True, text=True)
    calls = set(re.findall(r"#define __NR_(\w+) ", done.stdout))
    assert len(calls) > 300
    assert sorted((hooks & calls) - numbers() - set(ELSEWHERE)) == []


def rules(stack: str) -> dict[str, str]:
    return {"WEIR_RULES": f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={stack}\n"}


@pytest.fixture(scope="module")
def both(cc):
    """The program by libc's functions, and by number."""
    source = (PROGRAMS / "calls.c").read_text()
    return cc(source, "-w", name="calls"), cc(source, "-w", "-DBY_NUMBER", f"-I{PROGRAMS}",
        name="numbers")


@pytest.fixture
def play(execute, tmp_path):
    def run(program: Path, name: str, env: dict[str, str]) -> tuple[list[str], dict[str, bytes]]:
        directory = tmp_path / name
        directory.mkdir()
        said = execute([program], cwd=directory, env=env, timeout=60).ok().stdout
        return said.splitlines(), {p.name: p.read_bytes() for p in directory.iterdir()
            if p.is_file()}

    return run


@pytest.mark.parametrize("stack", STACKS)
def test_results_and_bytes_are_those_of_libcs_functions_in_a_plain_run(both, play, preload, stack):
    libc, number = both
    said, files = play(libc, "plain", {})
    layered_said, layered_files = play(number, "layered",
        {"LD_PRELOAD": str(preload), **rules(STACKS[stack])})
    assert layered_said == said
    assert layered_files == files


@pytest.mark.parametrize("stack", OTHERS)
def test_results_and_bytes_are_those_of_libcs_functions_under_the_same_layers(both, play, preload,
        stack):
    env = {"LD_PRELOAD": str(preload), **rules(OTHERS[stack])}
    assert play(both[1], "number", env) == play(both[0], "libc", env)


def test_each_call_is_recorded_once_with_the_operation_of_libcs_function(both, play, preload_env):
    def operations(program: Path, name: str) -> Counter:
        env = preload_env(name)
        play(program, name, env)
        trace = read_trace(Path(env["WEIR_TRACE_DIR"]))
        found = Counter(r.op for r in trace.records if r.layer == "posix")
        found["openat"] += found.pop("open", 0)  # openat2 is recorded as openat
        return found

    libc, number = both
    by_libc, by_number = operations(libc, "libc"), operations(number, "number")
    assert by_libc["statx"] > 0 and by_libc["preadv2"] > 0
    # by which the program prints: by number in both
    assert by_number - by_libc <= Counter(write=10**6)
    assert by_libc - by_number == Counter()


RESOLVED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char b[20] = "";
  int f = open("out.dat", O_RDWR | O_CREAT | O_TRUNC, 0644), here = open(".", O_RDONLY);
  write(f, "0123456789", 10);
  struct open_how how = {.flags = O_RDWR, .resolve = RESOLVE_IN_ROOT};
  int g = syscall(SYS_openat2, here, "/out.dat", &how, sizeof how);
  printf("%zd ", read(g, b, sizeof b));
  write(g, "ab", 2);
  lseek(f, 0, SEEK_END);
  write(f, "cd", 2);
  close(g);
  how.flags |= O_TRUNC;
  struct stat about;
  fstat(f, &about);
  printf("%ld ", (long)about.st_size);
  g = syscall(SYS_openat2, here, "/out.dat", &how, sizeof how);
  fstat(f, &about);
  printf("%d %ld ", g > 0, (long)about.st_size);
  write(g, "end", 3);
  close(g);
  printf("%zd\n", pread(f, b, sizeof b, 0));
  how.resolve = 1u << 20;
  printf("%ld %ld\n", syscall(SYS_openat2, here, "out.dat", &how, sizeof how), syscall(SYS_openat2, here, "out.dat", (void *)8, sizeof how));
  return 0;
}
"""


@pytest.mark.parametrize("stack", ["bufa", "global", "keep"])
def test_a_path_that_is_resolved_in_another_way_is_the_kernels(cc, execute, preload, tmp_path,
        stack):
    program = cc(RESOLVED, "-w", name="resolved")
    env = {"LD_PRELOAD": str(preload), **rules((STACKS | OTHERS)[stack])}
    assert execute([program], cwd=tmp_path, env=env).ok().stdout == "10 14 1 0 3\n-1 -1\n"
    assert (tmp_path / "out.dat").read_bytes() == b"end"


NODE = """
const fs = require('fs'), d = fs.openSync('out.dat', 'w');
for (let i = 0; i < 2000; i++) fs.writeSync(d, 'line ' + i + '\\n');
console.log(fs.statSync('out.dat').size, fs.fstatSync(d).size);
fs.copyFileSync('out.dat', 'copy.dat');
console.log(fs.statSync('copy.dat').size);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_sees_the_sizes_of_what_it_wrote_and_copies_it(execute, preload_env, tmp_path):
    """libuv makes statx, copy_file_range and others by number."""
    env = preload_env(**rules(STACKS["bufa usual"]))
    said = execute([shutil.which("node"), "-e", NODE], cwd=tmp_path, env=env,
        timeout=60).ok().stdout
    assert said == "18890 18890\n18890\n"
    assert (tmp_path / "copy.dat").read_bytes() == b"".join(b"line %d\n" % i for i in range(2000))
    assert "statx" in {r.op for r in read_trace(Path(env["WEIR_TRACE_DIR"])).records}


BEHIND = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from) {
  return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, from);
}
int munmap(void *at, size_t n) { return (int)syscall(SYS_munmap, at, n); }
"""
MAPS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  const int fd = open("mapped.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, "mapped", 6) != 6) return 1;
  char *bytes = mmap(NULL, 6, PROT_READ, MAP_SHARED, fd, 0);
  void *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED || more == MAP_FAILED) return 2;
  printf("%.6s", bytes);
  return munmap(bytes, 6) | munmap(more, 1 << 20) | close(fd);
}
"""


def test_a_library_whose_mmap_is_a_system_call_by_number(cc, execute, preload, tmp_path):
    """As in every program of MPICH: UCX leads calls of libc's function to its own, which does so.
    """
    library = cc(BEHIND, "-shared", "-fPIC", name="behind.so")
    env = {"LD_PRELOAD": f"{preload} {library}", **rules(STACKS["bufa"])}
    done = execute([cc(MAPS, name="maps")], cwd=tmp_path, env=env, timeout=20).ok()
    assert (done.stdout, (tmp_path / "mapped.dat").read_bytes()) == ("mapped", b"mapped")


OVER_LIBC = r"""
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int stat(const char *path, struct stat *to) { return syscall(SYS_stat, path, to); }
int rename(const char *path, const char *to) { return syscall(SYS_rename, path, to); }
void *mmap(void *at, size_t n, int p, int flags, int fd, off_t from) { return (void *)syscall(SYS_mmap, at, n, p, flags, fd, from); }
int munmap(void *at, size_t n) { return syscall(SYS_munmap, at, n); }
"""


def test_a_library_that_makes_libcs_functions_of_system_calls_is_not_called_in_its_turn(both, cc,
        play, preload):
    """As UCX does with mmap: the hook's function is the library's, whose system call comes to the
    hook again."""
    library = cc(OVER_LIBC, "-w", "-fPIC", "-shared", name="over_libc.so")
    said, files = play(both[0], "plain", {})
    env = {"LD_PRELOAD": f"{preload}:{library}", **rules(STACKS["bufa"])}
    assert play(both[0], "libc", env) == (said, files)
    assert play(both[1], "number", env) == (said, files)
