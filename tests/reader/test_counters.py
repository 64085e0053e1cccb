# SPDX-License-Identifier: Apache-2.0
"""Counters share histograms: as exact as with histograms of their own (format 1), and as records.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from weir.report import build, report_json
from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter, counter
from weir.trace.counters import counters_in
from weir.trace.file import COUNTERS
from weir.trace.ops import NESTED

NAMES = ("/scratch/an/a", "/scratch/an/b", "pipe:[3]", "/dev/null")


def write(path, version: int) -> None:
    with TraceWriter(path, level=2, version=version) as writer:
        t = writer.created_ticks
        for pid in (7, 8):
            process = writer.process(pid)
            made = [
                counter(op, 1 + file, 100 << file, 10 << op_number, t, t + 60,
                    file=process.name(name), flags=flags)
                for file, name in enumerate(NAMES)
                for op_number, (op, flags) in enumerate([("write", 0), ("read", 0),
                    ("read", NESTED)])
            ]
            process.counters(*made)
            # a bin whose fifth byte is not 0
            process.counters(counter("write", 1 << 40, 0, 3, t + 1, t + 2, file=1), thread=2)


def test_traces_of_version_1_are_read_as_ever(tmp_path):
    files = []
    for version in (1, 2):
        (tmp_path / str(version) / "main").mkdir(parents=True)
        path = tmp_path / str(version) / "main" / "n.weir"
        write(path, version)
        files.append(TraceFile(path).scan())
    for table in ("rows", "histograms", "processes"):
        older, newer = (file.array(table) for file in files)
        assert len(older) == len(newer) > 0
        for key in set(newer.dtype.names) - {"offset", "page"}:
            assert (older[key] == newer[key]).all(), (table, key)
    assert len(files[1].array("histograms")) == 2 * 2 * 3
    assert files[0].array("problems").tolist() == files[1].array("problems").tolist() == []
    first, second = (json.dumps(report_json(build(tmp_path / str(version)))) for version in (1, 2))
    assert first.replace(str(tmp_path / "1"), "") == second.replace(str(tmp_path / "2"), "")


@pytest.mark.parametrize("version", [1, 2])
def test_counters_that_are_followed_are_those_of_the_tables(tmp_path, version):
    write(tmp_path / "n.weir", version)
    file = TraceFile(tmp_path / "n.weir")
    chunks = file.array("chunks")
    found = np.concatenate([counters_in(file.raw, chunk)
        for chunk in chunks[chunks["kind"] == COUNTERS]])
    found = found[found["op"] != 0]
    assert len(found) == 2 * (4 * 3 + 1) and set(found["form"].tolist()) == {0}
    rows = file.scan().array("rows")
    for key in ("calls", "bytes", "ticks"):
        assert found[key].sum() == rows[key].sum()


MIXED = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdlib.h>
static char data[1 << 16];
static void put(int fd, int number) {
  for (int i = 0; i < number; ++i) {
    if (write(fd, data, (size_t)1 << (i % 9 * 2)) < 0) abort();
  }
}
int main(int argc, char** argv) {
  char name[64];
  int ends[2];
  for (int file = 0; file < 40; ++file) {
    if (file % 5 == 0) snprintf(name, sizeof name, "/dev/shm/weir.%d.%d", (int)getpid(), file);
    else if (file % 7 == 0) strcpy(name, "/dev/null");
    else snprintf(name, sizeof name, "file.%d", file);
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    put(fd, file);
    if (pwrite(fd, data, 100, 0) < 0 || pwrite(fd, data, 5, -1) >= 0 || close(fd) != 0) abort();
    if (file % 5 == 0) unlink(name);
    if (pipe(ends) != 0) abort();
    put(ends[1], file % 6);
    close(ends[1]);
    if (read(ends[0], data, sizeof data) < 0) abort();
    close(ends[0]);
  }
  return 0;
}
"""


def by_size(directory) -> dict[tuple[int, ...], list[int]]:
    (path,) = directory.glob("*.weir")
    table = TraceFile(path).scan().array("histograms")
    for one in table:
        # what failed has a duration alone, at levels below trace
        assert one["by_duration"].sum() >= one["by_size"].sum()
    return {tuple(int(one[key]) for key in ("op", "layer", "flags", "is_file")): one["by_size"]
        .tolist() for one in table}


@pytest.mark.parametrize("level", ["detail", "summary"])
def test_histograms_of_counters_are_those_of_records(cc, execute, preload_env, tmp_path, level):
    """Of files and of what is none apart, where counters are kept by file."""
    program = cc(MIXED)
    found = {}
    for one in ("trace", level):
        (tmp_path / f"cwd.{one}").mkdir()
        env = preload_env(f"{one}.step", one)
        execute([program], cwd=tmp_path / f"cwd.{one}", env=env).ok()
        found[one] = by_size(tmp_path / "run" / f"{one}.step")
    if level == "summary":
        records = {}
        for (*kind, _), bins in found["trace"].items():
            records[(*kind, 1)] = np.add(records.get((*kind, 1), [0] * 36), bins).tolist()
        found["trace"] = records
    else:
        # operations of both kinds
        assert len({key[:3] for key in found[level]}) < len(found[level])
    counters = found[level]
    assert found["trace"].keys() == counters.keys()
    different = {key for key in counters if counters[key] != found["trace"][key]}
    assert all(sum(found["trace"][key]) > sum(counters[key])
        for key in different), "sizes of failed calls are in records alone"
    assert 1 <= len(different) <= 2
