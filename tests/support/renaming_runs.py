# SPDX-License-Identifier: Apache-2.0
"""Runs in which files are renamed, exchanged and linked: made up of actions, or traced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import strategies as st

from weir.trace._synthetic import TraceWriter, event

RANKS, STEPS = 2, 3
NAMES, LINKS = ("a", "b", "c"), ("l", "m")
one_action = st.fixed_dictionaries(
    {
        "what": st.sampled_from(["write", "read", "write", "read", "rename", "rename", "exchange",
            "link", "symlink"]),
        "old": st.sampled_from(NAMES),
        "new": st.sampled_from(NAMES),
        "through": st.sampled_from((None, None, *LINKS)),
        "rank": st.integers(0, RANKS - 1),
        "step": st.integers(0, STEPS - 1),
        "size": st.integers(1, 20),
    }
)


def possible(made: list[dict]) -> list[dict]:
    """In order of the steps; a process keeps the first and the last time of one rename, so there
    are no three of a kind."""
    seen: Counter = Counter()
    found = []
    for one in sorted(made, key=lambda one: one["step"]):
        link = one["through"] if one["what"] == "symlink" else None
        key = (one["what"], one["old"], one["new"], link, one["rank"], one["step"])
        seen[key] += 1
        if one["what"] in ("write", "read") or (seen[key] < 3
                and (one["old"] != one["new"] or one["what"] == "symlink")):
            found.append(one)
    return found


def write_run(run: Path, made: list[dict]) -> None:
    """Action k begins 100 * k ns after the first; accesses open their file first."""
    for step in range(STEPS):
        directory = run / f"s{step}"
        directory.mkdir(parents=True)
        with TraceWriter(directory / "n.weir") as writer:
            ranks = [writer.process(100 + rank, rank, RANKS, cwd="/d") for rank in range(RANKS)]
            for number, one in enumerate(made):
                if one["step"] == step:
                    ranks[one["rank"]].events(records_of(ranks[one["rank"]], one,
                        writer.created_ticks + 100 * number))


def records_of(process, one: dict, at: int) -> list:
    link = one["through"]
    if one["what"] in ("write", "read"):
        file = process.name(f"/d/{link or one['old']}")
        return [event("open", at, 5, file=file), event(f"p{one['what']}", at + 10, 5, file=file,
            size=one["size"], offset=0)]
    if one["what"] == "symlink":
        return [event("naming", at, 0,
            file=process.name(f"symlink\n{one['old']}\n/d/{link or LINKS[0]}"), below=True,
            nested=True)]
    return [event("naming", at, 0,
        file=process.name(f"{one['what']}\n/d/{one['old']}\n/d/{one['new']}"), below=True,
        nested=True)]


def trace(weir, run: Path, step: str, script: str, level: str = "trace") -> None:
    weir("trace", "--level", level, "--step", step, "-o", run, "--", "bash", "-c", script,
        cwd=run.parent).ok()
