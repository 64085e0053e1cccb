# SPDX-License-Identifier: Apache-2.0
"""A real distributed file system on this machine, for tests: GlusterFS of two bricks in memory,
files in shards of 4 MiB.

Bricks and client are started from volume files of their own, without the daemon that manages
volumes: nothing of the system's own GlusterFS is touched, it is there in a fraction of a second,
and it ends with pytest.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from weir_process import limit

BRICKS = 2
START_S = limit(60)
PROGRAMS = ("glusterfsd", "glusterfs")
PR_SET_PDEATHSIG = 1

BRICK = """
volume posix
  type storage/posix
  option directory {directory}
end-volume
volume locks
  type features/locks
  subvolumes posix
end-volume
volume brick
  type performance/io-threads
  subvolumes locks
end-volume
volume server
  type protocol/server
  option transport-type socket
  option transport.address-family unix
  option transport.socket.listen-path {socket}
  option auth.addr.brick.allow *
  subvolumes brick
end-volume
"""
CLIENT_OF_BRICK = """
volume brick{number}
  type protocol/client
  option transport-type socket
  option transport.address-family unix
  option remote-host localhost
  option transport.socket.connect-path {socket}
  option remote-subvolume brick
end-volume
"""
CLIENT = """
volume spread
  type cluster/distribute
  subvolumes {bricks}
end-volume
volume shard
  type features/shard
  option shard-block-size 4MB
  subvolumes spread
end-volume
"""


def why_not() -> str | None:
    """Why there can be no GlusterFS here, if so."""
    missing = [program for program in PROGRAMS
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None]
    if missing:
        return f"GlusterFS is not installed (no {', '.join(missing)}; Debian: glusterfs-client)"
    if os.getuid() != 0:
        return "GlusterFS keeps attributes that root alone may set"
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse here: this kernel or container has no FUSE"
    return None


class GlusterFs:
    """``path`` is the mount, ``bricks`` the directories in memory that hold what is written there.
    """

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="weir-glusterfs-", dir="/dev/shm"))
        self._processes: list[subprocess.Popen] = []
        self.path = self._directory / "mount"
        self.bricks = [self._directory / f"brick{number}" for number in range(BRICKS)]
        for directory in (self.path, *self.bricks):
            directory.mkdir()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.path], capture_output=True, timeout=START_S)
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self) -> None:
        # not ports, which somebody else may take before the server does
        sockets = [f"{directory}.socket" for directory in self.bricks]
        for number, (directory, socket) in enumerate(zip(self.bricks, sockets, strict=True)):
            self._run("glusterfsd", f"brick{number}",
                BRICK.format(directory=directory, socket=socket))
        names = [f"brick{number}" for number in range(BRICKS)]
        parts = [CLIENT_OF_BRICK.format(number=number, socket=socket)
            for number, socket in enumerate(sockets)]
        self._run("glusterfs", "client", "".join(parts) + CLIENT.format(bricks=" ".join(names)),
            str(self.path))
        self._wait_until_mounted()

    def _run(self, program: str, name: str, volume: str, *arguments: str) -> None:
        file = self._directory / f"{name}.vol"
        file.write_text(volume)
        command = [program, "--no-daemon", f"--volfile={file}", f"--log-file={self._log(name)}",
            f"--pid-file={file}.pid", *arguments]
        environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin"}
        self._processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={k: v for k, v in environment.items() if k != "LD_PRELOAD"},
                preexec_fn=_die_with_parent,
            )
        )

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _wait_until_mounted(self) -> None:
        end = time.monotonic() + START_S
        # The kernel shows the mount before the client answers; it answers when it has found its
        # bricks.
        while not self._answers():
            ended = [process.args[0] for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                said = "\n".join(self._log(name).read_text()[-3000:]
                    for name in ("client", "brick0") if self._log(name).exists())
                raise RuntimeError(
                    f"GlusterFS did not start{f': {ended} ended' if ended else ''}\n{said}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        log = self._log("client")
        if not log.exists() or "switched to graph 0" not in log.read_text():
            return False
        # A directory is made on all bricks: one that the client has not reached yet is EIO.
        asked = 'mountpoint -q "$1" && mkdir "$1/asked" && rmdir "$1/asked"'
        command = ["sh", "-c", asked, "sh", self.path]
        return subprocess.run(command, timeout=START_S, capture_output=True).returncode == 0


def _die_with_parent() -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
