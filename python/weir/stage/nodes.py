# SPDX-License-Identifier: Apache-2.0
"""How many nodes the lines of a batch system in a job script ask for."""

from __future__ import annotations

import re

_SLURM = re.compile(r"#SBATCH\s(?:.*\s)?(?:-N\s*|--nodes[=\s]\s*)(\d+)")
_PBS = re.compile(r"#PBS\s(?:.*\s)?-l\s*(?:[^\s#]*,)?((?:select|nodes)=([^\s,#]+))")


def nodes_asked(text: str) -> list[tuple[int, int, str]]:
    """Line, number of nodes and the words that say so, above the first command. Of a range it is
    the least; PBS adds up what stands between plus signs."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            break
        if match := _SLURM.match(line):
            found.append((number, int(match[1]), "#SBATCH"))
        elif match := _PBS.match(line):
            count = sum(_chunks(chunk) for chunk in match[2].split("+"))
            found.append((number, count, f"#PBS -l {match[1]}"))
    return found


def _chunks(text: str) -> int:
    """``4:ncpus=8`` are four; one that begins with a name is that node."""
    match = re.match(r"(\d+)(?::|$)", text)
    return int(match[1]) if match else 1
