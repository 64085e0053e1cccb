# SPDX-License-Identifier: Apache-2.0
"""Any sequence of calls gives what it gives without the library, and is recorded call by call,
where each transfer began."""

import random

import pytest

CALLS = 6000
TRANSFERS = ("read", "write", "readv", "writev", "pread", "pwrite")


def run_both(guest, traced, execute, tmp_path, seed: int, level: str):
    program = guest("random_calls.c")
    outputs = []
    for name in ("plain", "traced"):
        (tmp_path / name).mkdir()
        command = [program, seed, tmp_path / f"{name}.truth", CALLS]
        if name == "plain":
            outputs.append(execute(command, cwd=tmp_path / name).ok().stdout)
        else:
            outcome = traced(command, cwd=tmp_path / name, level=level).ok()
            outputs.append(outcome.done.stdout)
    assert outputs[0] == outputs[1], f"seed {seed}"
    assert (tmp_path / "plain.truth").read_text() == (tmp_path / "traced.truth").read_text()
    made = {word: int(number)
        for word, number in (line.split() for line in outputs[0].splitlines()[:-1])}
    truth = [line.split() for line in (tmp_path / "plain.truth").read_text().splitlines()]
    return outcome.trace, made, [(op, int(at), int(size)) for op, at, size in truth]


@pytest.mark.parametrize("turn", range(3))
def test_random_calls_are_recorded_where_they_happened(guest, traced, execute, tmp_path, turn):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    trace, made, truth = run_both(guest, traced, execute, tmp_path, seed, "trace")
    first = min(trace.processes.values(), key=lambda p: p.start_ticks)
    mine = [r for r in trace.records if r.process == first.number]
    assert len(trace.processes) == 1 + made["fork"]
    for op, calls in made.items():
        if op not in ("fork", "chdir", "open"):
            assert sum(r.op == op for r in mine) == calls, op
    seen = [r for r in mine if r.op in TRANSFERS]
    assert [r.op for r in seen] == [op for op, _, _ in truth]
    known = 0
    for record, (op, at, size) in zip(seen, truth):
        assert record.failed == (at == -1), (record, at)
        if record.failed:
            continue
        assert record.size == size, (record, op, at, size)
        if record.offset is not None:
            known += 1
            assert record.offset == at, (record, op, at, size)
    assert known > len(seen) // 10


@pytest.mark.parametrize("level", ["detail", "summary"])
def test_random_calls_are_counted(guest, traced, execute, tmp_path, level):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    trace, made, truth = run_both(guest, traced, execute, tmp_path, seed, level)
    first = min(trace.processes.values(), key=lambda p: p.start_ticks)
    mine = [c for c in trace.counters if c.process == first.number]
    for op, calls in made.items():
        if op not in ("fork", "chdir", "open"):
            assert sum(c.calls for c in mine if c.op == op) == calls, op
    for op in TRANSFERS:
        moved = sum(size for name, at, size in truth if name == op and at != -1)
        assert sum(c.bytes for c in mine if c.op == op) == moved, op
