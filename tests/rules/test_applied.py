# SPDX-License-Identifier: Apache-2.0
"""Each condition of a rule, seen in programs: the writes of a file fail if, and only if, the rule
that says so matches it."""

from __future__ import annotations

import os

import pytest

NO_OTHERS = {"FILENV": None, "IOBUF_PARAMS": None, "MPICH_MPIIO_HINTS": None}
FAILS = "error:op=write:errno=ENOSPC"

WRITER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* writer PATH HOW: opens as the letters of HOW say, writes one byte, says whether that failed */
int main(int argc, char **argv) {
  int flags = O_WRONLY;
  if (strchr(argv[2], 'u')) flags = O_RDWR;
  if (strchr(argv[2], 'a')) flags |= O_APPEND;
  if (strchr(argv[2], 'c')) flags |= O_CREAT;
  if (strchr(argv[2], 't')) flags |= O_TRUNC;
  int fd = open(argv[1], flags, 0644);
  if (fd < 0) { perror("open"); return 2; }
  puts(write(fd, "x", 1) == 1 ? "written" : "failed");
  return argc != 3;
}
"""

@pytest.fixture
def outcome(weir, tmp_path):
    """``outcome('name = "x"', program, "x", "wc")``: what the program says when its writes fail
    under the rule."""

    def call(conditions: str, program, *arguments: str, env=None, prepare=lambda: None) -> str:
        directory = tmp_path / "run"
        directory.mkdir(exist_ok=True)
        prepare()
        (directory / "r.toml").write_text(f'[[rule]]\n{conditions}\nstack = "{FAILS}"\n')
        command = ["run", "--quiet", "--rules", "r.toml", "--", program, *arguments]
        return weir(*command, cwd=directory, env={**NO_OTHERS, **(env or {})}).ok().stdout.strip()

    return call


@pytest.mark.parametrize(
    ("conditions", "arguments", "expected"),
    [
        ("", ["data", "wc"], "failed"),
        ('name = "da*"', ["data", "wc"], "failed"),
        ('name = "da*"', ["other", "wc"], "written"),
        ('path = "*/run/data"', ["./../run//data", "wc"], "failed"),
        ('path = "/nowhere/*"', ["data", "wc"], "written"),
        ('dir = "{directory}"', ["data", "wc"], "failed"),
        ('dir = "{directory}/run"', ["../data", "wc"], "written"),
        ('mode = "read"', ["data", "wc"], "written"),
        ('mode = ["append", "truncate"]', ["data", "wc"], "written"),
        ('mode = ["append", "truncate"]', ["data", "wac"], "failed"),
        ('mode = "readwrite"', ["data", "uc"], "failed"),
        ('mode = "create"', ["r.toml", "w"], "written"),
        ("min_size = 5", ["r.toml", "w"], "failed"),
        ("min_size = 5", ["r.toml", "wt"], "written"),
        ("max_size = 4", ["new", "wc"], "failed"),
        ("max_size = 4", ["r.toml", "w"], "written"),
        ('fstype = "no-such"', ["data", "wc"], "written"),
        ('ranks = "0-3"', ["data", "wc"], "written"),
        ("unit = 61", ["data", "wc"], "written"),
    ],
)
def test_a_condition_decides(outcome, cc, tmp_path, conditions, arguments, expected):
    assert outcome(conditions.format(directory=tmp_path), cc(WRITER, name="writer"),
        *arguments) == expected


@pytest.mark.parametrize(("rank", "expected"), [("3", "failed"), ("4", "written")])
def test_ranks_are_the_launchers(outcome, cc, rank, expected):
    env = {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "8"}
    assert outcome('ranks = "0-3"', cc(WRITER, name="writer"), "data", "wc", env=env) == expected


def test_the_file_system_is_that_of_the_file(outcome, cc):
    from weir.rules.matching.explain import file_system_of

    program, path = cc(WRITER, name="writer"), f"/dev/shm/weir-rules-test-{os.getpid()}"
    try:
        kind = file_system_of(path)
        assert kind
        assert outcome(f'fstype = ["lustre", "{kind}"]', program, path, "wc") == "failed"
        assert outcome('fstype = ["lustre", "nfs"]', program, path, "wc") == "written"
    finally:
        os.unlink(path)


def test_the_first_rule_wins_and_none_exempts(weir, cc, tmp_path):
    (tmp_path / "r.toml").write_text(
        f'[[rule]]\nname = "data"\nstack = "none"\n[[rule]]\nname = "*"\nstack = "{FAILS}"\n')
    program = cc(WRITER, name="writer")
    for name, expected in (("data", "written"), ("other", "failed")):
        done = weir("run", "--rules", "r.toml", "--", program, name, "wc", cwd=tmp_path,
            env=NO_OTHERS).ok()
        assert done.stdout.strip() == expected


def test_what_a_job_script_exports_applies(weir, execute, cc, tmp_path):
    program = cc(WRITER, name="writer")
    weir("assign", "-F", FAILS, "f:data", cwd=tmp_path, env=NO_OTHERS).ok()
    lines = weir("env", "--rules", ".assign", "--no-trace", cwd=tmp_path, env=NO_OTHERS).ok().stdout
    off = weir("env", "--off", cwd=tmp_path).ok().stdout
    done = execute(["bash", "-c",
        f"{lines}\n{program} data wc\n{program} other wc\n{off}\n{program} data wc"],
        cwd=tmp_path).ok()
    assert done.stdout.split() == ["failed", "written", "written"]
