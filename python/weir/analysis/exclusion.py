# SPDX-License-Identifier: Apache-2.0
"""Files that no figure counts unless the user includes them: files of the system, of interpreters
and of MPI libraries at their start.

The system's directories are those that Darshan leaves out (darshan-runtime/lib/darshan-config.c),
with /lib64, /lib32 and /run. The trace has the calls on these files all the same: what is left out
is decided when a run is read, here and nowhere else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cached_property

import numpy as np

from weir.analysis.names import fold

SYSTEM = tuple("/bin /boot /etc /lib /lib32 /lib64 /opt /run /sbin /usr /var".split())
NOT_SYSTEM = ("/var/opt/cray/dws/mounts", "/var/tmp")  # users' files below the system's directories
START_FILES = tuple(  # of interpreters and MPI libraries, wherever they are installed
    "__pycache__/ site-packages/ dist-packages/ lib/python[0-9]* lib64/python[0-9]* *.pyc "
    "pyvenv.cfg *.so *.so.[0-9]* share/openmpi/ lib/openmpi/ .openmpi/ .pmix/ "
    "openmpi-mca-params.conf .pyenv/ conda-meta/ "
    "mca-params.conf pmix-mca-params*.conf ucx.conf pci.ids pci.ids.gz".split()
)
NONE = "none"
EXCLUDE, INCLUDE = "WEIR_EXCLUDE", "WEIR_INCLUDE"


def _expression(word: str) -> str:
    """The regular expression, to be searched for in a path, of a word of a list."""
    directory, is_glob = word.rstrip("/"), any(c in word for c in "*?[")
    if word.startswith("/") and not is_glob:
        return f"^{re.escape(directory)}(?:/|$)"
    begin = "^" if word.startswith("/") else "(?:^|/)"
    if "/" not in word:
        begin += "(?=[^/]*$)"  # in the name of the file alone
    body = translate(directory).removeprefix("(?s:").removesuffix(")\\Z")
    return f"{begin}{body}" + ("/" if word.endswith("/") else "$")


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    expressions = [_expression(word) for word in words]
    return re.compile("|".join(f"(?:{one})" for one in expressions),
        re.DOTALL) if expressions else None


@dataclass(frozen=True)
class Exclusion:
    """Which files are left out.

    excluded, included: words of the user. A word is a directory (absolute, or with / at its end:
    all below it), or a shell pattern: without a / for the name of the file, else for the whole path
    or its end after a /, where * stands for directories as well. included comes first, then
    excluded, then the default list, unless default is False. cwd: the working directory of the
    step; files below it are no files of the system.
    """

    excluded: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    default: bool = True
    cwd: str | None = None

    def of_step(self, cwd: str | None) -> Exclusion:
        return replace(self, cwd=cwd)

    def mask(self, names: Sequence[str]) -> np.ndarray:
        """Of names as they were recorded: whether each is that of a file which is left out."""
        known = self._known  # most names are those of several nodes
        for name in names:
            if name not in known:
                known[name] = self.leaves_out(fold(name))
        return np.fromiter(map(known.__getitem__, names), bool, len(names))

    def leaves_out(self, name: str) -> bool:
        if not name.startswith("/"):
            return False
        if self._included is not None and self._included.search(name):
            return False
        if self._excluded is not None and self._excluded.search(name):
            return True
        return self.default and (self._is_system(name) or _is_start_file(name))

    def word_of(self, name: str) -> str:
        """The word of the lists by which a file is left out."""
        words = (*self.excluded, *(f"{one}/" for one in SYSTEM), *START_FILES)
        return next((word for word in words if re.search(_expression(word), name, re.DOTALL)), "")

    def _is_system(self, name: str) -> bool:
        if not name.startswith(_SYSTEM) or name.startswith(_NOT_SYSTEM):
            return False
        return not (self.cwd and self.cwd != "/" and name.startswith(self.cwd.rstrip("/") + "/"))

    @cached_property
    def _known(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _excluded(self) -> re.Pattern[str] | None:
        return _any_of(self.excluded)

    @cached_property
    def _included(self) -> re.Pattern[str] | None:
        return _any_of(self.included)


_SYSTEM = tuple(f"{one}/" for one in SYSTEM)
_NOT_SYSTEM = tuple(f"{one}/" for one in NOT_SYSTEM)
_START: re.Pattern[str] = _any_of(START_FILES)  # type: ignore[assignment]
# Of each word the longest part without wildcards, but for those that have another one in them: most
# names have none of these, and the expression takes ten times as long to say so.
_OF_WORDS = {max(re.split(r"[*?]|\[[^]]*\]", word), key=len) for word in START_FILES}
_PARTS = tuple(one for one in _OF_WORDS if not any(part in one for part in _OF_WORDS - {one}))


def _is_start_file(name: str) -> bool:
    return any(map(name.__contains__, _PARTS)) and _START.search(name) is not None


def exclusion_of(
    exclude: str | None = None, include: str | None = None, environ: Mapping[str, str] = os.environ
) -> Exclusion:
    """From lists with commas between the words; None: those of the environment. The word `none`
    among the excluded ones stands for no default list."""
    excluded = _words(environ.get(EXCLUDE, "") if exclude is None else exclude)
    included = _words(environ.get(INCLUDE, "") if include is None else include)
    kept = tuple(word for word in excluded if word != NONE)
    return Exclusion(kept, included, NONE not in excluded)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))
