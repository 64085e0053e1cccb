# SPDX-License-Identifier: Apache-2.0
"""A trace that cannot be written: the program runs as it would alone, and weir says so once."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from weir_process import clean_environment

FOREIGN = """
int main(int argc, char** argv) {
  int fd = open_new(argc > 1 ? argv[1] : "file");
  for (int i = 0; i < 100; ++i) MUST(write(fd, "x", 1) == 1);
  MUST(lseek(fd, 0, SEEK_CUR) == 100);
  puts("right");
  return 7;
}
"""


@pytest.fixture
def refused(guest, execute, preload, tmp_path):
    """Runs a guest, or a command, with a trace directory that does not do."""

    def call(directory, *command, **variables):
        work = tmp_path / "cwd"
        work.mkdir(exist_ok=True)
        env = {"WEIR_TRACE_DIR": str(directory), "LD_PRELOAD": str(preload), **variables}
        return execute(command or [guest(FOREIGN)], env=env, cwd=work)

    return call


def says_once(done, *words: str) -> None:
    assert (done.returncode, done.stdout) == (7, "right\n"), done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("weir: "), done.stderr
    assert "the program runs without a trace" in done.stderr
    for word in words:
        assert word in done.stderr


def test_no_such_directory(refused, tmp_path):
    says_once(refused(tmp_path / "missing"), str(tmp_path / "missing"), "no such directory")


def test_a_file_system_that_maps_no_shared_files(refused, testfs):
    says_once(refused(testfs("lustre").path), "maps no shared files", "on another one")


def test_a_file_where_the_directory_should_be(refused, tmp_path):
    (tmp_path / "file").write_text("")
    says_once(refused(tmp_path / "file"), "not a directory")


def test_a_directory_of_somebody_else(guest, execute, preload, tmp_path):
    if os.geteuid() != 0:
        directory = tmp_path / "closed"
        directory.mkdir(mode=0o555)
        command = [guest(FOREIGN)]
    else:
        directory = tmp_path
        command = ["setpriv", "--reuid=65534", "--clear-groups", str(guest(FOREIGN)), "/dev/null"]
    env = {"WEIR_TRACE_DIR": str(directory), "LD_PRELOAD": str(preload)}
    done = execute(command, env=env, cwd="/")
    if "execv" in done.stderr or "cannot be preloaded" in done.stderr:
        pytest.skip("the other user may not read the source tree")
    assert "no permission" in done.stderr


def test_a_read_only_mount(refused, tmp_path):
    directory = tmp_path / "mount"
    directory.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", directory],
        capture_output=True)
    if done.returncode != 0:
        pytest.skip("only root can mount")
    try:
        says_once(refused(directory), "read-only")
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def test_another_kind_of_file_under_the_traces_name(refused, tmp_path):
    (tmp_path / "node.weir").write_text("this is a text that somebody wants to keep" * 200)
    before = (tmp_path / "node.weir").read_bytes()
    says_once(refused(tmp_path, WEIR_NODE="node"), "not a trace")
    assert (tmp_path / "node.weir").read_bytes() == before


@pytest.mark.parametrize("size", [0, 8, 4095])
def test_a_trace_file_that_is_cut_short(refused, tmp_path, size):
    (tmp_path / "node.weir").write_bytes((b"WEIRTRC1" + bytes(4096))[:size])
    says_once(refused(tmp_path, WEIR_NODE="node"), "not a trace")


def test_a_mistake_in_a_variable(refused, tmp_path):
    says_once(refused(tmp_path, WEIR_LEVEL="everything"), "WEIR_LEVEL")
    says_once(refused(tmp_path, WEIR_BUDGET="much"), "WEIR_BUDGET")
    says_once(refused("relative"), "WEIR_TRACE_DIR")


def test_quiet_is_quiet(refused, tmp_path):
    done = refused(tmp_path / "missing", WEIR_QUIET="1")
    assert (done.returncode, done.stdout, done.stderr) == (7, "right\n", "")


def test_children_of_the_first_to_say_it_are_quiet(refused, guest, tmp_path):
    program = guest(FOREIGN)
    script = f"{program}; {program} other & {program} third & wait; exit 7"
    done = refused(tmp_path / "missing", "bash", "-c", script)
    assert (done.returncode, done.stdout) == (7, "right\n" * 3)
    assert done.stderr.count("weir: ") == 1, done.stderr


def test_of_four_ranks_at_once_the_first_speaks(guest, preload, tmp_path):
    def run(rank: int) -> subprocess.CompletedProcess:
        env = {"WEIR_TRACE_DIR": str(tmp_path / "missing"), "LD_PRELOAD": str(preload),
            "PMI_RANK": str(rank), "PMI_SIZE": "4"}
        return subprocess.run(
            [guest(FOREIGN), f"file{rank}"], env=clean_environment(env), cwd=tmp_path,
            capture_output=True, text=True, timeout=300
        )

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(run, range(4)))
    assert [(d.returncode, d.stdout) for d in done] == [(7, "right\n")] * 4
    assert [d.stderr.count("weir: ") for d in done] == [1, 0, 0, 0]


def test_nobody_reads_standard_error(refused, guest, tmp_path):
    """A message into a closed pipe must not end the program by SIGPIPE, nor leave the signal
    pending."""
    script = f"mkfifo pipe; sleep 0.5 < pipe & exec 2> pipe; wait; {guest(FOREIGN)}; echo status $?"
    done = refused(tmp_path / "missing", "bash", "-c", script, WEIR_QUIET="")
    assert done.stdout == "right\nstatus 7\n"


def test_standard_error_is_closed(refused, guest, tmp_path):
    done = refused(tmp_path / "missing", "bash", "-c",
        f"unset WEIR_QUIET; exec 2>&-; {guest(FOREIGN)}; exit $?")
    assert (done.returncode, done.stdout) == (7, "right\n")
    assert (tmp_path / "cwd" / "file").read_text() == "x" * 100


WRITES_NO_FILE = """
int main(void) {
  puts("right");
  return 7;
}
"""


def test_no_file_may_have_a_size(refused, guest, preload, tmp_path):
    """The first byte of the trace file would be SIGXFSZ, which ends a program."""
    script = f"ulimit -f 0; LD_PRELOAD={preload} exec {guest(WRITES_NO_FILE)}"
    says_once(refused(tmp_path, "bash", "-c", script, LD_PRELOAD=None))
    assert list(tmp_path.glob("*.weir*")) == []
