# SPDX-License-Identifier: Apache-2.0
"""Carrying weir's variables to other nodes with Open MPI's launcher."""

from __future__ import annotations

import os
import shutil

import pytest

from weir.capture._launcher import is_open_mpi, with_forwarding

LIBRARY = "/opt/libweir-preload.so"
ENV = {"LD_PRELOAD": LIBRARY, "WEIR_TRACE_DIR": "/run/a", "WEIR_NODE": "n1", "HOME": "/x"}
GIVEN = ["-x", "LD_PRELOAD", "-x", "WEIR_TRACE_DIR"]


def forwarded(command: str, **more: str) -> list[str]:
    return with_forwarding(command.split(), {**ENV, **more}, LIBRARY)[0]


def test_variables_are_named_right_behind_the_launcher():
    assert forwarded("mpirun -n 4 ./model -x y") == ["mpirun", *GIVEN, "-n", "4", "./model", "-x",
        "y"]


def test_each_application_of_one_command_line_gets_them():
    assert forwarded("mpirun -n 1 ./a : -n 3 ./b") == ["mpirun", *GIVEN, "-n", "1", "./a", ":",
        *GIVEN, "-n", "3", "./b"]


def test_a_preload_library_of_the_users_own_stays_behind_weirs():
    assert forwarded("mpirun -x LD_PRELOAD=/a.so ./m") == [
        "mpirun", "-x", "WEIR_TRACE_DIR", "-x", f"LD_PRELOAD={LIBRARY}:/a.so", "./m"
    ]  # fmt: skip
    assert forwarded("mpirun -x LD_PRELOAD ./m") == ["mpirun", "-x", "WEIR_TRACE_DIR", "-x",
        "LD_PRELOAD", "./m"]


def test_a_list_in_the_environment_is_extended_because_mpirun_refuses_both():
    command, environ = with_forwarding(
        ["mpirun", "./m"], {**ENV, "OMPI_MCA_mca_base_env_list": "HOME;LD_PRELOAD=/a.so"}, LIBRARY
    )
    assert command == ["mpirun", "./m"]
    assert environ["OMPI_MCA_mca_base_env_list"] == (
        f"HOME;LD_PRELOAD={LIBRARY}:/a.so;WEIR_TRACE_DIR"
    )


def test_a_list_on_the_command_line_is_left_to_the_user():
    words = "mpirun --mca mca_base_env_list HOME ./m"
    assert forwarded(words) == words.split()


@pytest.mark.parametrize("name", ["orterun", "prterun", "mpirun.openmpi",
    "/opt/openmpi/bin/mpiexec.openmpi"])
def test_open_mpi_is_known_by_name(name):
    assert is_open_mpi(name, {"PATH": ""})


@pytest.mark.parametrize("name", ["bash", "srun", "mpiexec.hydra", "mpirun.mpich",
    "no-such-mpirun"])
def test_others_are_not_open_mpi(name):
    assert not is_open_mpi(name, dict(os.environ))


@pytest.mark.parametrize(("says", "expected"),
    [("mpirun (Open MPI) 5.0.5", True), ("mpirun (IBM) 10", False)])
def test_a_launcher_without_a_telling_name_is_asked(tmp_path, says, expected):
    launcher = tmp_path / "mpirun"
    launcher.write_text(f"#!/bin/sh\necho '{says}'\n")
    launcher.chmod(0o755)
    assert is_open_mpi("mpirun", {"PATH": f"{tmp_path}:/usr/bin:/bin"}) is expected
    assert is_open_mpi(str(launcher), {"PATH": ""}) is expected


def test_a_launcher_that_is_not_there_is_nobodys():
    assert not is_open_mpi("mpirun", {"PATH": ""})


FAKE_SSH = """#!/bin/sh
# What ssh does for mpirun, on this machine: a shell elsewhere, with an environment of its own.
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec env -i PATH="$PATH" HOME="$HOME" LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "$*"
"""


@pytest.mark.mpi
def test_ranks_on_another_node_are_traced_although_open_mpi_starts_them_without_the_environment(
        weir, tmp_path):
    if shutil.which("mpirun.openmpi") is None:
        pytest.skip("Open MPI is not installed here: no mpirun.openmpi")
    agent = tmp_path / "ssh"
    agent.write_text(FAKE_SSH)
    agent.chmod(0o755)
    script = tmp_path / "rank"
    script.write_text("#!/bin/sh\necho \"${WEIR_TRACE_DIR##*/} ${LD_PRELOAD##*/} $MARK\"\n")
    script.chmod(0o755)
    options = ["--oversubscribe", "--mca", "plm_rsh_agent", agent, "--host", "198.51.100.7:1", "-n",
        "1"]
    environment = {"MARK": "kept", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = weir("trace", "-o", tmp_path / "run", "--step", "far", "--", "mpirun.openmpi", *options,
        script, env=environment)
    assert done.ok().stdout == "far libweir-preload.so \n", done.stderr
