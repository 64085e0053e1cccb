# SPDX-License-Identifier: Apache-2.0
"""Static programs linked with `weir wrap-flags` leave the same records as dynamic ones under the
preload library."""

from __future__ import annotations

import json
import subprocess

import pytest

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *name) {
  int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < 100; ++i) if (pwrite(fd, "abcd", 4, 4 * i) != 4) return name;
  fsync(fd);
  close(fd);
  return NULL;
}
int main(void) {
  char line[80];
  struct stat st;
  FILE *f = fopen("stream", "w+");
  for (int i = 0; i < 50; ++i) fprintf(f, "line %d\n", i);
  fputs("end\n", f);
  rewind(f);
  while (fgets(line, sizeof line, f)) {}
  fclose(f);
  pthread_t t[3];
  char names[3][4] = {"t0", "t1", "t2"};
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], NULL, thread, names[i]);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  if (fork() == 0) {
    int fd = open("child", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    struct iovec v[2] = {{"ab", 2}, {"cde", 3}};
    int ok = writev(fd, v, 2) == 5;
    _exit(!ok);
  }
  int status;
  wait(&status);
  return status != 0 || stat("t0", &st) != 0 || st.st_size != 400 || unlink("t2") != 0 || open("missing", O_RDONLY) >= 0;
}
"""


@pytest.fixture(scope="module")
def wrap_flags(weir, cc) -> list[str]:
    done = weir("wrap-flags")
    if "not built" in done.stderr:
        pytest.skip("no wrap archive: this machine has no libc.a")
    return done.ok().stdout.split()


def figures(weir, directory, program) -> dict:
    directory.mkdir()
    weir("trace", "--quiet", "-o", directory / "run", "--", program, cwd=directory).ok()
    report = json.loads(weir("report", directory / "run", "--json", cwd=directory).ok().stdout)
    assert report["complete"] and report["lost_events"] == 0
    return {
        entry["file"].removeprefix(f"{directory}/"): {op: (row["calls"], row["bytes"])
            for op, row in entry["ops"].items()}
        for entry in report["files"]
        if entry["file"].startswith(f"{directory}/")
    }


def test_a_wrapped_static_program_is_seen_as_its_dynamic_twin_is(weir, cc, tmp_path, wrap_flags):
    static = cc(PROGRAM, "-static", *wrap_flags, name="wrapped")
    linked = figures(weir, tmp_path / "static", static)
    preloaded = figures(weir, tmp_path / "dynamic", cc(PROGRAM, name="dynamic"))
    assert linked == preloaded
    assert linked["t1"]["pwrite"] == (100, 400) and linked["child"]["writev"] == (1, 5)
    assert "static wrapper library" in weir("doctor", static).stdout


def test_a_wrapped_program_writes_nothing_when_nobody_traces_it(cc, execute, tmp_path, wrap_flags):
    program = cc(PROGRAM, "-static", *wrap_flags, name="wrapped")
    execute([program], cwd=tmp_path).ok()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["child", "stream", "t0", "t1"]


def test_the_archive_defines_a_wrapper_for_each_flag(wrap_flags):
    archive, flags = wrap_flags[1], wrap_flags[-1].removeprefix("@")
    wanted = {line.strip().removeprefix("-Wl,--wrap=") for line in open(flags)}
    listed = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True,
        check=True).stdout
    defined = {line.split()[-1].removeprefix("__wrap_") for line in listed.splitlines()
        if " T __wrap_" in line}
    assert len(wanted) > 200 and wanted <= defined


def test_linking_with_the_flags_says_nothing(execute, tmp_path, wrap_flags):
    (tmp_path / "program.c").write_text(PROGRAM)
    done = execute(["gcc", "-static", "program.c", *wrap_flags, "-o", "program"], cwd=tmp_path).ok()
    assert done.stdout + done.stderr == ""
