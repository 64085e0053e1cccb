# SPDX-License-Identifier: Apache-2.0
"""Words of our own that the field has another one for do not come back (tools/words.toml)."""

from __future__ import annotations

import re
import tomllib

import pytest
from weir_sources import ROOT, none, text_files

RULES = tomllib.loads((ROOT / "tools" / "words.toml").read_text())
# A part of an identifier counts: task_of, GroupTask, kTasks, node.task. Not: multitasking, asked.
PART = r"(?:(?<![a-zA-Z])(?:{lower}|{capital})|(?<=[a-z]){capital})s?(?![a-z])|(?<![a-zA-Z]){upper}S?(?![a-zA-Z])"


def expression(word: str) -> re.Pattern[str]:
    return re.compile(PART.format(lower=word, capital=word.capitalize(), upper=word.upper()))


def found_in(text: str) -> list[tuple[int, str]]:
    """Line and word of each that is there."""
    found = []
    lowered = text.lower()
    for word in [one for one in RULES["words"] if one in lowered]:
        allowed = RULES["but"].get(word, [])
        cleaned = re.sub("|".join(allowed), "", text) if allowed else text
        found += [(cleaned.count("\n", 0, hit.start()) + 1, word)
            for hit in expression(word).finditer(cleaned)]
    return found


def test_words_of_our_own_do_not_come_back():
    files = [(name, text) for name, text in text_files()
        if not str(name).startswith(tuple(RULES["files"]["except"]))]
    none([f'{name}:{line}: "{word}"; say: {RULES["words"][word]}' for name, text in files
        for line, word in found_in(text)])


@pytest.mark.parametrize("text", ["a task", "Tasks", "task_of", "GroupTask", "kTasks",
    "WEIR_TASKS=2", "by_task"])
def test_a_word_is_found(text):
    assert found_in(text) == [(1, "task")]


@pytest.mark.parametrize("text", ["srun --ntasks=4", "SLURM_STEP_NUM_TASKS", "/proc/self/task",
    "asked", "multitasking"])
def test_what_others_call_so_is_not(text):
    assert found_in(text) == []
