# SPDX-License-Identifier: Apache-2.0
"""Another user cannot have the daemon write into this user's files: not by making the job's
directory in shared memory first, nor by making it again after it vanished, nor by what is put into
it. With two real users."""

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from weir_process import clean_environment

VICTIM, STRANGER = 61001, 61002
DEAD = 4_000_000  # no process has this number
SLOTS_AT, INODE_AT, PATH_AT, SECRET_AT = 32, 16, 176, 120  # docs/formats/arena.md

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="two users: needs root and setpriv")

WRITER = """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    int fd = open(arguments[i], O_RDWR | O_CREAT, 0644);
    char wait;
    if (pwrite(fd, "doctored", 8, 0) != 8 || write(1, "x", 1) != 1 || read(0, &wait, 1) != 1) return 1;
  }
  return 0;
}
"""


class Scene:
    """A directory that everybody may enter, with the library, its daemon and a program that keeps 8
    bytes of each file dirty."""

    def __init__(self, preload: Path, program: Path):
        self.directory = Path(tempfile.mkdtemp())
        self.directory.chmod(0o755)
        self.job = f"pytest-{uuid.uuid4().hex[:12]}"
        self.node = Path(f"/dev/shm/weir.{VICTIM}.{self.job}/0")
        self.library, self.program = self.directory / preload.name, self.directory / "writer"
        for source, to in ((preload, self.library), (preload.parent / "weir-drain",
                self.directory / "weir-drain"), (program, self.program)):
            shutil.copy(source, to)
            to.chmod(0o755)
        self.homes = {user: self.directory / str(user) for user in (VICTIM, STRANGER)}
        for user, home in self.homes.items():
            home.mkdir()
            os.chown(home, user, user)
        self.target = self.homes[VICTIM] / "important"
        self.target.write_bytes(b"unharmed")
        os.chown(self.target, VICTIM, VICTIM)

    def start(self, user: int, *files: str) -> subprocess.Popen:
        """The program, when it has written its first file."""
        rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:16:2:always=1|system\n"
        env = clean_environment({"LD_PRELOAD": str(self.library), "WEIR_RULES": rules,
            "WEIR_JOB": self.job})
        paths = [self.homes[user] / file for file in files]
        program = subprocess.Popen(as_user(user, self.program, *paths), env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        assert program.stdout.read(1) == b"x"
        return program

    def arena_of(self, user: int) -> bytes:
        """An arena in which that user has bytes for a file."""
        program = self.start(user, "a.dat")
        found = list(Path(f"/dev/shm/weir.{user}.{self.job}/0").glob("arena.*"))
        arena = found[0].read_bytes()
        program.kill()
        program.wait()
        return arena

    def doctored(self, arena: bytes) -> bytes:
        """The same for the victim's file, of a process that has died."""
        data = bytearray(arena)
        (slots,) = struct.unpack_from("<Q", data, SLOTS_AT)
        about = self.target.stat()
        struct.pack_into("<II", data, 4096, DEAD, 1)
        struct.pack_into("<QQQ", data, slots + INODE_AT, about.st_dev, about.st_ino, 0)
        path = bytes(self.target) + b"\0"
        data[slots + PATH_AT : slots + PATH_AT + len(path)] = path
        return bytes(data)

    def plant(self, arena: bytes, owner: int, mode: int = 0o700) -> Path:
        """The victim's directory as that user makes it, with the arena in it."""
        shutil.rmtree(self.node.parent, ignore_errors=True)
        for directory in (self.node.parent, self.node):
            directory.mkdir()
            directory.chmod(mode)
            os.chown(directory, owner, owner)
        file = self.node / f"arena.{DEAD}.1.0"
        file.write_bytes(arena)
        file.chmod(mode & 0o666)
        os.chown(file, owner, owner)
        return file

    def drain(self, what: str = "--recover") -> subprocess.CompletedProcess:
        command = as_user(VICTIM, self.directory / "weir-drain", what, self.node)
        return subprocess.run(command, env=clean_environment({}), timeout=300, check=False,
            capture_output=True, text=True)

    def remove(self) -> None:
        shutil.rmtree(self.directory)
        for user in (VICTIM, STRANGER):
            shutil.rmtree(f"/dev/shm/weir.{user}.{self.job}", ignore_errors=True)


def as_user(user: int, *command) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *map(str, command)]


@pytest.fixture
def scene(preload, cc):
    made = Scene(preload, cc(WRITER, name="doctor"))
    yield made
    made.remove()


def give_secret(scene: Scene, arena: Path) -> None:
    """What only the job knows, written into the arena by a test that may read everything."""
    scene.drain("--status")  # makes it
    key = (scene.node / "key").read_bytes()
    with arena.open("r+b") as file:
        file.seek(SECRET_AT)
        file.write(key)


def change_directory(scene: Scene, arena: Path) -> None:
    for directory in (scene.node.parent, scene.node):
        os.chown(directory, STRANGER, STRANGER)
        directory.chmod(0o777)
    arena.chmod(0o666)


def change_owner(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    os.chown(arena, STRANGER, STRANGER)


def open_to_all(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    arena.chmod(0o666)


def directory_open_to_all(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    scene.node.chmod(0o777)


def job_open_to_all(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    scene.node.parent.chmod(0o777)


def second_name(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    os.link(arena, scene.node / "another")


def link_to_arena(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    arena.rename(scene.node / "elsewhere")
    arena.symlink_to("elsewhere")


def link_to_directory(scene: Scene, arena: Path) -> None:
    give_secret(scene, arena)
    scene.node.rename(scene.node.parent / "1")
    scene.node.symlink_to("1")


def pipe(scene: Scene, arena: Path) -> None:
    arena.unlink()
    os.mkfifo(arena, 0o600)
    os.chown(arena, VICTIM, VICTIM)


def without_secret(scene: Scene, arena: Path) -> None:
    scene.drain("--status")


DOCTORED = (change_directory, change_owner, open_to_all, directory_open_to_all, job_open_to_all,
    second_name, link_to_arena, link_to_directory)


def test_an_arena_that_another_could_have_made_is_not_written_out(scene):
    """Each way by itself; the last line shows that the arena is one that is written out where it
    belongs."""
    arena = scene.doctored(scene.arena_of(STRANGER))
    for doctor in (*DOCTORED, pipe, without_secret):
        planted = scene.plant(arena, VICTIM)
        doctor(scene, planted)
        said = scene.drain()
        assert scene.target.read_bytes() == b"unharmed", doctor.__name__
        assert "refused" in said.stderr, (doctor.__name__, said)
    give_secret(scene, scene.plant(arena, VICTIM))
    assert scene.drain().returncode == 0 and scene.target.read_bytes() == b"doctored"


def test_a_directory_that_a_stranger_makes_again_gets_no_bytes_and_no_descriptors(scene):
    """As after systemd's RemoveIPC: the victim's program and its daemon live, their directory is
    gone and another user makes one."""
    arena = scene.doctored(scene.arena_of(STRANGER))
    program = scene.start(VICTIM, "a.dat", "b.dat")
    daemon = struct.unpack_from("<III", (scene.node / "pulse").read_bytes())[2]
    scene.plant(arena, STRANGER, 0o777)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as trap:
        trap.bind(str(scene.node / "drain"))
        os.chown(scene.node / "drain", STRANGER, STRANGER)
        (scene.node / "drain").chmod(0o777)
        assert program.communicate(b"..", timeout=300)[0] == b"x" and program.returncode == 0
        os.kill(daemon, 15)  # it looks for arenas of the dead once more, and goes
        while Path(f"/proc/{daemon}").exists() and "Z" not in Path(
                f"/proc/{daemon}/stat").read_text().split()[2]:
            time.sleep(0.01)
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.recv(1 << 12)
    assert scene.target.read_bytes() == b"unharmed"
    for file in ("a.dat", "b.dat"):
        assert (scene.homes[VICTIM] / file).read_bytes() == b"doctored"


def test_what_a_program_accepted_reaches_its_file_when_its_directory_has_gone(scene):
    program = scene.start(VICTIM, "a.dat")
    shutil.rmtree(scene.node.parent)
    program.kill()
    program.wait()
    end = time.monotonic() + 300
    while (scene.homes[VICTIM] / "a.dat").read_bytes() != b"doctored" and time.monotonic() < end:
        time.sleep(0.01)
    assert (scene.homes[VICTIM] / "a.dat").read_bytes() == b"doctored"


def test_a_file_that_got_the_number_of_a_removed_one_is_left_alone(scene):
    """The daemon and the program die; the file is removed, and the next one of its path gets its
    inode, as on ext4."""
    program = scene.start(VICTIM, "a.dat")
    file = scene.homes[VICTIM] / "a.dat"
    first = file.stat().st_ino
    os.kill(struct.unpack_from("<III", (scene.node / "pulse").read_bytes())[2], 9)
    program.kill()
    program.wait()
    (arena,) = scene.node.glob("arena.*")
    file.unlink()
    others = []
    for _ in range(200):  # until the number comes again
        file.write_bytes(b"another one")
        if file.stat().st_ino == first:
            break
        others.append(file.rename(file.with_suffix(f".{len(others)}")))
    else:
        # where numbers do not come again: notified of the next file
        with arena.open("r+b") as bytes_of_arena:
            slots = struct.unpack_from("<Q", arena.read_bytes(), SLOTS_AT)[0]
            file.write_bytes(b"another one")
            bytes_of_arena.seek(slots + INODE_AT + 8)
            bytes_of_arena.write(struct.pack("<Q", file.stat().st_ino))
    os.chown(file, VICTIM, VICTIM)
    assert scene.drain().returncode == 1
    assert file.read_bytes() == b"another one"
    assert "ESTALE" in (scene.node / "errors").read_text()
