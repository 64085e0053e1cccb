# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at any moment: the file can be read, and lacks at most the record that each thread was
writing."""

import json
import os
import random
import struct
import subprocess
import time

import pytest
from decode import read_trace
from weir_process import clean_environment


@pytest.fixture
def kills(request) -> int:
    return 250 if request.config.getoption("--slow") else 15


def calls_begun(directory) -> list[int]:
    page = (directory / "begun").read_bytes()
    return [struct.unpack_from("<Q", page, 64 * i)[0] for i in (0, 1)]


def wait_for_a_call(directory, process: subprocess.Popen) -> None:
    end = time.monotonic() + 300
    while not any(calls_begun(directory)) and process.poll() is None:
        assert time.monotonic() < end, "the program makes no calls"
        time.sleep(0.0005)


def kept(trace, thread: int) -> int:
    names = (f"/t{thread}", f"/s{thread}")
    return sum(r.op in ("open", "pwrite", "close") and r.file.endswith(names)
        for r in trace.records)


def test_killed_at_any_moment_at_most_the_record_being_written_is_lost(guest, preload_env, tmp_path,
        kills, weir):
    program = guest("killed.c")
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    seen = calls = 0
    for attempt in range(kills):
        env = preload_env(f"step{attempt}")
        (tmp_path / "begun").write_bytes(bytes(4096))
        delay = chance.choice([chance.uniform(0, 0.004), chance.uniform(0, 0.06)])
        with subprocess.Popen([program], env=clean_environment(env), cwd=tmp_path,
                stdin=subprocess.DEVNULL) as process:
            if attempt % 3 == 0:  # a busy machine may take longer than that to start a program
                wait_for_a_call(tmp_path, process)
            time.sleep(delay)
            process.kill()
        assert process.returncode == -9
        begun = calls_begun(tmp_path)
        if not os.path.exists(f"{env['WEIR_TRACE_DIR']}/{os.uname().nodename}.weir"):
            assert begun == [0, 0]
            continue
        trace = read_trace(f"{env['WEIR_TRACE_DIR']}/{os.uname().nodename}.weir")
        for thread in (0, 1):
            assert begun[thread] - 1 <= kept(trace, thread) <= begun[thread], (seed, attempt, delay)
        seen += sum(begun)
        calls += sum(r.layer != "marker" for r in trace.records)
        assert all(p.lost_events == 0 and p.failures == 0 for p in trace.processes.values())
    assert seen > 0
    # The report reads all of these files, and finds nothing damaged and nothing lost.
    report = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    assert sum(step["all"]["calls"] for step in report["steps"]) == calls
    assert report["lost_events"] == 0 and report["complete"], report["problems"]
