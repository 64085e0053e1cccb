# SPDX-License-Identifier: Apache-2.0
"""Mounting, unmounting, and what remains when something ends before its time."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from weir import _native, testfs as product
from weir._errors import NotThere, StorageError, UsageError
from weir.testfs._mount import is_mounted

READ_ONE_BYTE = (
    "import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); print(len(os.pread(fd, 1, 0)))"
)


def wait_for(condition, what: str, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)


def started_reader(path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", READ_ONE_BYTE, path], stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL)


@pytest.fixture
def used(testfs):
    """A mount with a file of one byte."""
    fs = testfs("direct")
    (fs.path / "a").write_bytes(b"1")
    return fs


def test_the_counters_outlive_the_mount(used):
    used.unmount()
    assert not is_mounted(used.path) and os.listdir(used.path) == []
    stats = used.stats()
    assert not stats.running and stats.file("a").writes == 1
    assert product.find(used.path).stats() == stats


def test_a_new_mount_counts_from_zero(used, testfs):
    used.unmount()
    with product.mounted(used.path, backing=used.backing) as again:
        assert again.stats().requests["write"] == 0 and again.stats().running
        assert (again.path / "a").read_bytes() == b"1"


def test_a_directory_shows_its_own_files_without_a_backing(tmp_path, testfs):
    (tmp_path / "mine").write_bytes(b"1")
    with product.mounted(tmp_path, preset="lustre") as fs:
        assert os.listdir(tmp_path) == ["mine"]
        (tmp_path / "new").write_bytes(b"22")
        assert fs.stats().file("new").bytes_written == 2
    assert (tmp_path / "new").read_bytes() == b"22"


def test_a_killed_server_leaves_nobody_waiting(used):
    used.control(hang=100)
    reader = started_reader(used.path / "a")
    wait_for(lambda: used.stats().in_flight > 0, "a request in service")
    os.kill(used.mount.pid, signal.SIGKILL)
    assert reader.wait(timeout=300) != 0
    assert is_mounted(used.path) and not used.stats().running
    assert used.stats().file("a").writes == 1
    used.unmount()
    assert not is_mounted(used.path)


def test_a_mount_whose_server_was_killed_is_named_and_can_be_renewed(used, weir):
    os.kill(used.mount.pid, signal.SIGKILL)
    wait_for(lambda: not used.stats().running, "the end of the server")
    again = weir("testfs", "mount", used.path, "--backing", used.backing)
    assert (
        again.returncode == 2
        and "whose server has ended is mounted there still; weir testfs umount" in again.stderr
    ), again
    behind = weir("testfs", "mount", used.path, "--backing", used.path / "below")
    assert behind.returncode == 2 and "Traceback" not in behind.stderr, behind
    changed = weir("testfs", "control", used.path, "hang=1")
    # A mount that another test makes meanwhile removes what is known of ended ones.
    assert changed.returncode == 3 and re.search(
        "the test file system has ended|no test file system was mounted", changed.stderr), changed
    weir("testfs", "umount", used.path).ok()
    with product.mounted(used.path, backing=used.backing):
        assert (used.path / "a").read_bytes() == b"1"


def test_umount_of_a_file_system_that_hangs(used):
    used.control(hang=100)
    reader = started_reader(used.path / "a")
    wait_for(lambda: used.stats().in_flight > 0, "a request in service")
    used.unmount()
    assert reader.wait(timeout=300) != 0
    assert not is_mounted(used.path) and not used.stats().running


def test_umount_while_files_are_open(used, weir):
    fd = os.open(used.path / "a", os.O_RDONLY)
    weir("testfs", "umount", used.path).ok()
    assert not is_mounted(used.path) and not used.stats().running
    for action in (lambda: os.pread(fd, 1, 0), lambda: os.close(fd)):
        with pytest.raises(OSError) as failed:
            action()
        assert failed.value.errno == errno.ENOTCONN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_unmounts(used, number):
    os.kill(used.mount.pid, number)
    wait_for(lambda: not used.stats().running, "the end of the server")
    assert not is_mounted(used.path)


def test_a_mount_ends_with_its_owner(tmp_path, testfs):
    point = tmp_path / "m"
    point.mkdir()
    with subprocess.Popen(["sleep", "100"]) as owner:
        fs = product.mount(point, owner=owner.pid)
        assert is_mounted(point)
        owner.kill()
    wait_for(lambda: not fs.stats().running, "the end of the server")
    assert not is_mounted(point)


def test_what_cannot_be_mounted_is_said(used, tmp_path):
    with pytest.raises(UsageError, match="mounted there already"):
        product.mount(used.path)
    with pytest.raises(NotThere, match="no such directory"):
        product.mount(tmp_path / "none")
    with pytest.raises(NotThere, match="no such directory"):
        product.mount(tmp_path, backing=tmp_path / "none")
    with pytest.raises(UsageError, match="no preset `gpfs`; there are local"):
        product.mount(tmp_path, preset="gpfs")
    with pytest.raises(UsageError, match="threads=0: expected threads=N, a number from 1"):
        product.mount(tmp_path, threads=0)
    with pytest.raises(UsageError, match="there is no option `speed`"):
        product.mount(tmp_path, speed=3)
    with pytest.raises(UsageError, match="no name of a bucket"):
        product.mount(tmp_path, bucket="a/b")
    with pytest.raises(NotThere, match="no test file system is mounted"):
        product.unmount(tmp_path)
    with pytest.raises(NotThere, match="was mounted there"):
        product.find(tmp_path)
    assert not is_mounted(tmp_path)


def test_a_program_that_is_not_built_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(_native, "library_directory", lambda: tmp_path)
    with pytest.raises(StorageError, match="apt-get install libfuse3-dev fuse3"):
        product.mount(tmp_path)


@pytest.mark.parametrize(
    ("hide", "said"),
    [
        ("mount -t tmpfs none /dev", "there is no /dev/fuse"),
        ("mount --bind /dev/null /dev/fuse", "cannot mount on"),
    ],
)
def test_a_system_without_the_device_is_said(used, execute, tmp_path, hide, said):
    program = _native.library_path("weir-testfs")
    script = f"{hide} && exec {program} {tmp_path}/state {tmp_path} {tmp_path}"
    done = execute(["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"]), "sh",
        "-c", script])
    assert done.returncode == 1 and said in done.stderr, done
    assert not (tmp_path / "state").exists()


def test_directories_with_odd_names(testfs, tmp_path):
    odd = tmp_path / 'a b\tc\\d,e"é'
    odd.mkdir()
    with product.mounted(odd) as fs:
        (odd / "x").write_bytes(b"1")
        assert fs.stats().file("x").writes == 1
    assert not is_mounted(odd)


def test_many_mounts_at_once(testfs):
    mounts = [testfs("direct") for _ in range(8)]
    for i, fs in enumerate(mounts):
        (fs.path / "a").write_bytes(bytes(i))
    assert [fs.stats().bytes_written for fs in mounts] == list(range(8))


def mounted_with_descriptors(count: int, directory, backing) -> product.Mount:
    """By a process that can have no more descriptors, even of root."""
    limited = ["prlimit", f"--nofile={count}:{count}"]
    if os.geteuid() == 0:
        limited = ["setpriv", "--bounding-set=-sys_resource", *limited]
    subprocess.run([*limited, sys.executable, "-m", "weir", "testfs", "mount", directory,
        "--backing", backing, "--preset", "lustre", "--round-trip-us", "0", "--data-us", "0",
        "--metadata-us", "0", "--owner", str(os.getpid())], check=True)
    return product.find(directory)


def test_more_files_than_descriptors_can_be_made_and_read(tmp_path):
    """The kernel forgets files that nobody has open, on the daemon's request."""
    directory, backing = tmp_path / "mount", tmp_path / "backing"
    directory.mkdir(), backing.mkdir()
    mount = mounted_with_descriptors(400, directory, backing)
    try:
        with open(directory / "held", "wb") as held:
            for number in range(1500):
                (directory / f"{number:04}").write_text(str(number))
            assert [path.read_text() for path in sorted(directory.glob("[0-9]*"))] == [
                str(number) for number in range(1500)]
            held.write(b"still the same file")
            assert os.readlink(f"/proc/self/fd/{held.fileno()}") == str(directory / "held")
        assert len(os.listdir(f"/proc/{mount.pid}/fd")) < 400
        assert (backing / "held").read_bytes() == b"still the same file"
        assert mount.stats().requests["create"] == 1501
    finally:
        mount.unmount()
