# SPDX-License-Identifier: Apache-2.0
"""Layer stage where the file's place is full: a tmpfs of 1 MiB. Whoever looks at the end of the
command, or later, learns that the bytes are on the tier alone."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from weir_stage import daemon_of, drained, wait_until

BYTES = 3_000_000
IN_MEMORY = "in memory, which is lost when the node restarts or the batch system clears it"


@pytest.fixture
def place(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    directory = tmp_path / "full"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@pytest.fixture
def staged(weir, tmp_path, tier, place):
    """``staged("async", "cp ...")``: weir run of a script, its *.dat on the tier."""
    (tmp_path / "big").write_bytes(bytes(BYTES))

    def call(drain, script, options=(), failures=0):
        """failures: that the daemon has to note before the command ends."""
        noted = f"until [ $(ls {tier}/failed 2>&1 | grep -c '^[0-9]*$') -ge {failures} ]"
        script = (f"{script}; status=$?; {noted} || [ $((i += 1)) -gt 2000 ]; do sleep 0.05; done; "
            "exit $status")
        rules = tmp_path / "rules.toml"
        rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "stage:tier={tier}:drain={drain}"\n')
        return weir("run", *options, "--rules", rules, "--", "sh", "-c", script, cwd=tmp_path,
            env={"WEIR_JOB": tier.name})

    return call


def stuck_line(place, tier, name="f.dat"):
    node = os.uname().nodename
    return (f"weir: {place}/{name}: the file system of {place} is full (No space left on device); "
            f"its 3,000,000 bytes are only on node {node}, on the tier {tier} {IN_MEMORY}; make "
            f"room there, then run on {node}: weir stage recover {tier}\n")


@pytest.mark.parametrize("drain", ["end", "async"])
@pytest.mark.parametrize("options", [(), ("--trace", "traced", "--quiet")], ids=["run", "trace"])
def test_a_command_whose_file_cannot_go_to_its_place_ends_with_status_5(staged, weir, place, tier,
        drain, options):
    done = staged(drain, "cp big full/f.dat", options, int(drain == "async"))
    assert (done.returncode, done.stderr) == (5, stuck_line(place, tier))
    assert not (place / "f.dat").exists()
    listed = weir("stage", "status", tier).ok().stdout
    assert f"drain={drain}" in listed and f"{place}/f.dat: No space left on device\n" in listed


def test_the_programs_own_status_stays(staged, place, tier):
    done = staged("end", "cp big full/f.dat; (exit 7)")
    assert (done.returncode, done.stderr) == (7, stuck_line(place, tier))


def test_a_later_command_is_not_blamed(staged, place, tier):
    assert staged("async", "cp big full/f.dat", failures=1).returncode == 5
    assert staged("async", "cat full/f.dat > /dev/null").ok().stderr == ""
    assert staged("end", "true").ok().stderr == stuck_line(place, tier)  # it tries once more


def test_of_many_files_the_first_are_named(staged, tier):
    done = staged("async", "for i in 1 2 3 4 5 6 7; do cp big full/$i.dat; done", failures=7)
    lines = done.stderr.splitlines()
    assert done.returncode == 5 and len(lines) == 6, done.stderr
    assert lines[-1] == (f"weir: 2 files with 6,000,000 bytes more are only on node "
                         f"{os.uname().nodename}, on the tier {tier} {IN_MEMORY}; see: weir stage "
                         f"status {tier}")


def test_drain_names_the_file_and_recover_brings_it(staged, weir, place, tier):
    assert staged("async", "cp big full/f.dat", failures=1).returncode == 5
    listed = weir("drain", "--job", tier.name)
    assert (listed.returncode, f"weir: {listed.stdout}") == (1, stuck_line(place, tier))
    assert "no bytes are held" in weir("drain", "--job", f"{tier.name[:20]}-other").ok().stdout
    waited = weir("drain", "--wait", env={"WEIR_JOB": tier.name})
    assert waited.returncode == 1 and f"{place}/f.dat" in waited.stderr
    subprocess.run(["mount", "-o", "remount,size=8m", place], check=True)
    weir("stage", "recover", tier).ok()
    assert (place / "f.dat").read_bytes() == bytes(BYTES) and drained(tier)
    assert os.listdir(tier / "failed") == []
    assert "no bytes are held" in weir("drain", "--job", tier.name).ok().stdout


def test_what_was_noted_of_bytes_that_are_written_again_is_void(staged, weir, place, tier):
    assert staged("async", "cp big full/f.dat", failures=1).returncode == 5
    staged("async", "cp /etc/passwd full/f.dat").ok()
    wait_until(lambda: (place / "f.dat").exists())
    assert "No space" not in weir("stage", "status", tier).ok().stdout


def test_a_file_whose_writer_was_killed_is_named(staged, tmp_path, place, tier):
    (tmp_path / "half.sh").write_text("exec 3> full/f.dat; echo half >&3; kill -9 $$\n")
    done = staged("async", "sh half.sh; true")
    assert done.returncode == 5
    assert f"{place}/f.dat: its writer was killed before it closed the file; its 5 bytes are " in \
        done.stderr
    assert f"run on {os.uname().nodename}: weir stage recover --unfinished {tier}" in done.stderr


def test_a_run_names_its_tiers(staged, weir, tmp_path, place, tier):
    """Of a tier whose job is another one than that of the command which looks."""
    assert staged("async", "cp big full/f.dat", ("--trace", "traced", "--quiet"),
        failures=1).returncode == 5
    assert "no bytes are held" in weir("drain", "--job", "another").ok().stdout
    run = tmp_path / "traced"
    listed = weir("drain", run)
    assert (listed.returncode, f"weir: {listed.stdout}") == (1, stuck_line(place, tier))
    assert f"{place}/f.dat: No space left" in weir("stage", "status", run).ok().stdout
    assert weir("stage", "recover", run).returncode == 1
    subprocess.run(["mount", "-o", "remount,size=8m", place], check=True)
    assert "1 file with 3,000,000 bytes brought" in weir("stage", "recover", run).ok().stdout
    assert (place / "f.dat").read_bytes() == bytes(BYTES)
    assert "no bytes are held" in weir("drain", run).ok().stdout


@pytest.mark.parametrize("verb", [("drain",), ("stage", "status"), ("stage", "recover")])
def test_what_is_no_run_with_a_tier_is_refused(weir, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    assert weir(*verb, tmp_path / "empty").returncode == 3
    weir("trace", "-o", tmp_path / "plain", "--quiet", "--", "true").ok()
    done = weir(*verb, tmp_path / "plain")
    if verb != ("drain",):  # its job may have bytes without a tier
        assert done.returncode == 3 and "put no file on a tier" in done.stderr


def test_files_that_are_copied_still_are_one_line(weir, tmp_path, tier):
    """A bandwidth at which a file takes minutes; the status is the program's."""
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "stage:tier={tier}:bandwidth=1000"\n')
    (tmp_path / "big").write_bytes(bytes(200_000))
    command = ("--rules", rules, "--", "sh", "-c", "cp big a.dat; cp big b.dat")
    done = weir("run", *command, cwd=tmp_path).ok()
    assert done.stderr == (f"weir: 2 files with 400,000 bytes on the tier {tier} are still on "
                           f"their way to their place; see: weir stage status {tier}\n")
    assert weir("run", "--quiet", *command, cwd=tmp_path).ok().stderr == ""
    os.kill(daemon_of(tier), signal.SIGKILL)
