# SPDX-License-Identifier: Apache-2.0
"""Which call reports a full disk under bufa (docs/guide/semantics.md, "Where a full disk is
reported"): a tmpfs of 1 MiB."""

from __future__ import annotations

import os
import shutil

import pytest

PROGRAM = r"""
import errno, os, sys
def status(call):
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
fd = os.open("full/f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
piece, calls = int(sys.argv[2]), [call for call in sys.argv[1].split(",") if call]
writes = [status(lambda: os.write(fd, bytes(piece))) for _ in range(-(-17 * 65536 // piece))]
print("writes", writes.count("ok"), *sorted(set(writes) - {"ok"}))
for call in calls:
    print(call, status(lambda: getattr(os, call)(fd)))
"""


@pytest.fixture
def full(weir, tmp_path):
    """``full(stack, calls, piece)``: what the program prints on a full disk, by call, and the line
    at its end."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a tmpfs needs root and unshare")

    def run(stack: str, calls: str, piece: int = 4096) -> tuple[list[str], str]:
        (tmp_path / "full").mkdir(exist_ok=True)
        (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "f"\nstack = "{stack}"\n')
        script = 'mount -t tmpfs -o size=1m tmpfs full && exec python3 -c "$0" "$@"'
        command = ("unshare", "-m", "sh", "-c", script, PROGRAM, calls, str(piece))
        done = weir("run", "--rules", tmp_path / "rules.toml", "--", *command, cwd=tmp_path,
            env={"WEIR_JOB": f"full{os.getpid()}"})
        assert done.returncode == (5 if "are not on disk" in done.stderr else 0), done.stderr
        return done.stdout.splitlines(), done.stderr

    return run


# 17 blocks of 64 KiB, by a program that does not look at the result of its last calls.
PERL = 'open(F, ">full/f") or die; for (1..272) { syswrite(F, "x" x 4096) == 4096 or die "refused" }'


@pytest.mark.parametrize("end", ["", "close F", "kill 9, $$"],
    ids=["open at the end", "closed", "killed"])
@pytest.mark.parametrize("quiet", [(), ("--trace", "traced", "--quiet")], ids=["run", "trace"])
def test_a_command_that_lost_bytes_and_did_not_look_ends_with_status_5(weir, full, tmp_path, end,
        quiet):
    (tmp_path / "full").mkdir()
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "f"\nstack = "bufa:256:2"\n')
    script = f"mount -t tmpfs -o size=1m tmpfs full; perl -e '{PERL}; {end}'; true"
    command = ("unshare", "-m", "sh", "-c", script)
    call = ("run", *quiet, "--rules", tmp_path / "rules.toml", "--", *command)
    environ = {"WEIR_JOB": f"full{os.getpid()}"}
    done = weir(*call, cwd=tmp_path, env=environ)
    assert done.returncode == 5, done.stderr
    lines = [line for line in done.stderr.splitlines() if "are not on disk" in line]
    assert len(lines) == 1 and "full/f: " in lines[0], done.stderr
    assert lines[0].endswith("are not on disk: No space left on device (ENOSPC)")
    after = weir("run", "--rules", tmp_path / "rules.toml", "--", "true", cwd=tmp_path, env=environ)
    assert (after.returncode, after.stderr) == (0, "")  # a later command is not blamed
    weir("drain", "--discard", env=environ)


def test_without_layers_the_write_reports_it(full):
    assert full("none", "fsync,close")[0] == ["writes 256 ENOSPC", "fsync ok", "close ok"]


@pytest.mark.parametrize("buffers", ["bufa:64:4", "bufa:256:2"])
def test_bytes_that_bufa_holds_are_reported_by_fsync_or_close(full, buffers):
    lines, errors = full(buffers, "fsync,fsync,close")
    assert lines == ["writes 272", "fsync ENOSPC", "fsync ok", "close ok"]  # once
    assert "full/f: 65536 bytes accepted were not written: no space left on device" in errors
    assert full(buffers, "close")[0] == ["writes 272", "close ENOSPC"]


def test_a_write_that_bufa_passes_on_reports_it(full):
    # Larger than all four buffers: smaller ones are held where the system answers slowly.
    assert full("bufa:64:4", "fsync,close", 1 << 19)[0] == ["writes 2 ENOSPC", "fsync ok",
        "close ok"]
