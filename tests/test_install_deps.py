# SPDX-License-Identifier: Apache-2.0
"""tools/install-deps against a pretended package system: nothing of the real one is asked or
changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from weir_process import run
from weir_sources import ROOT

LIST = (ROOT / "tools" / "packages.txt").read_text()


def packages(text: str) -> list[str]:
    return [line.split("|")[0].strip() for line in text.splitlines() if line
        and line[0] not in "#["]


ALL, DEMO = packages(LIST), packages(LIST.partition("[tests]")[0])

# installed: one package a line. apt-get install adds to it, if the lists have been updated when
# they had to be.
STUBS = {
    "dpkg-query": 'grep -qx "${@: -1}" "$PRETEND/installed" && printf installed',
    "id": 'cat "$PRETEND/uid"',
    "sudo": '[ -e "$PRETEND/sudo" ] || exit 1; [ "$1" = -n ] && shift; "$@"',
    "apt-get": """echo "$*" >> "$PRETEND/log"
case " $* " in
  *" update "*) rm -f "$PRETEND/stale" ;;
  *" install "*) [ ! -e "$PRETEND/stale" ] || exit 100
    for word; do case "$word" in -* | *=* | install) ;; *) echo "$word" >> "$PRETEND/installed" ;; esac; done ;;
esac""",
}


class Pretended:
    def __init__(self, directory: Path):
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir()
        for name, body in STUBS.items():
            (self.bin / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
            (self.bin / name).chmod(0o755)
        self.set(uid="0", installed="\n".join(ALL) + "\n", log="")

    def set(self, **files: str) -> None:
        for name, text in files.items():
            (self.directory / name).write_text(text)

    def without(self, *packages: str) -> None:
        self.set(installed="".join(f"{p}\n" for p in ALL if p not in packages))

    def log(self) -> list[str]:
        return (self.directory / "log").read_text().splitlines()

    def install_deps(self, *arguments: str):
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "PRETEND": str(self.directory)}
        return run([ROOT / "tools" / "install-deps", *arguments], env=env)


@pytest.fixture
def system(tmp_path) -> Pretended:
    return Pretended(tmp_path)


def test_nothing_missing_says_nothing_and_asks_nothing(system):
    done = system.install_deps()
    assert (done.returncode, done.stdout, done.stderr, system.log()) == (0, "", "", [])


def test_root_installs_the_missing_ones_alone_and_once(system):
    system.without("mpich", "strace")
    system.install_deps().ok()
    (install,) = system.log()
    assert install.split()[-2:] == ["mpich", "strace"] and "-y" in install.split()
    system.install_deps().ok()
    assert len(system.log()) == 1


def test_stale_lists_are_renewed_once(system):
    system.without("nco")
    system.set(stale="")
    system.install_deps().ok()
    assert [("update" in line.split()) for line in system.log()] == [False, True, False]


def test_without_root_exactly_the_missing_ones_are_named(system):
    system.set(uid="1000")
    system.without("gfortran", "libeccodes-dev")
    done = system.install_deps()
    assert done.returncode == 1 and system.log() == []
    named = [line.split()[0] for line in done.stderr.splitlines() if line.startswith("  ")
        and "apt-get" not in line]
    assert named == ["gfortran", "libeccodes-dev"]
    assert "apt-get install -y --no-install-recommends gfortran libeccodes-dev\n" in done.stderr


def test_one_package_is_not_called_packages(system):
    system.set(uid="1000")
    for missing, words in ((["nco"], "weir needs 1 package that is not installed:"),
            (["nco", "zsh"], "weir needs 2 packages that are not installed:")):
        system.without(*missing)
        assert system.install_deps().stderr.splitlines()[0] == words


def test_a_sudo_that_asks_nothing_is_used(system):
    system.set(uid="1000", sudo="")
    system.without("mpich")
    system.install_deps().ok()
    assert len(system.log()) == 1


def test_check_installs_nothing_even_as_root(system):
    system.without("mpich")
    done = system.install_deps("--check")
    assert done.returncode == 1 and "mpich" in done.stderr and system.log() == []


def test_an_installation_that_installs_nothing_is_an_error(system):
    system.without("mpich")
    (system.bin / "apt-get").write_text("#!/usr/bin/env bash\nexit 0\n")
    done = system.install_deps()
    assert done.returncode == 1 and "still missing" in done.stderr


def test_a_python_that_serves_makes_its_packages_unnecessary(system):
    system.without("python3-venv", "python3")
    assert system.install_deps().returncode == 0
    assert system.log() == []


def test_unknown_argument_is_refused(system):
    assert system.install_deps("--force").returncode == 2


def test_the_demo_wants_no_more_than_it_needs(system):
    assert 0 < len(DEMO) < len(ALL) / 2 and not {"chromium", "glusterfs-client", "zsh", "strace",
        "mpich"} & set(DEMO)
    system.set(installed="")
    system.install_deps("--demo").ok()
    (install,) = system.log()
    # of which the machine may have its own
    assert set(DEMO) - set(install.split()) <= {"python3", "python3-venv", "npm"}
    assert not (set(ALL) - set(DEMO)) & set(install.split())
    system.install_deps("--demo").ok()
    assert len(system.log()) == 1
