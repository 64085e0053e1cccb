# SPDX-License-Identifier: Apache-2.0
"""``weir stage script``: job scripts with #DW lines, run from one end to the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

JOBDW = "#!/bin/sh\n#DW jobdw type=scratch access_mode=striped,private capacity=1MB\n"


@pytest.fixture
def tier(tmp_path):
    place = tmp_path / "tier"
    place.mkdir()
    return place


@pytest.fixture
def job(weir, tmp_path, tier, monkeypatch):
    """Runs a script of these lines in tmp_path/work."""
    where = tmp_path / "work"
    where.mkdir()
    monkeypatch.chdir(where)
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)

    def run(lines, *options, arguments=()):
        (where / "job.sh").write_text(JOBDW + lines)
        return weir("stage", "script", "--tier", tier, *options, "job.sh", *arguments)

    run.where, run.tier = where, tier
    return run


def test_a_job_reads_what_was_staged_in_and_its_output_is_staged_out(job):
    (job.where / "IN").mkdir()
    (job.where / "IN/wrfinput").write_bytes(b"input" * 1000)
    result = job("#DW stage_in type=file source=IN/wrfinput destination=$DW_JOB_STRIPED/wrfinput\n"
        "#DW stage_out type=file source=$DW_JOB_STRIPED/wrfout destination=OUT/d01/wrfout\n"
        "tr a-z A-Z < $DW_JOB_STRIPED/wrfinput > ${DW_JOB_STRIPED}wrfout\n"
        "chmod 640 $DW_JOB_STRIPED/wrfout; test ! -e OUT && echo $1\n", arguments=["-x"]).ok()
    written = job.where / "OUT/d01/wrfout"
    assert written.read_bytes() == b"INPUT" * 1000 and written.stat().st_mode & 0o777 == 0o640
    assert result.stdout == "-x\n" and list(job.tier.iterdir()) == []
    assert "stage_in (line 3): 1 of 1 files, 5.0 of 5.0 kB, " in result.stderr
    assert "stage_out (line 4): 1 of 1 files" in result.stderr


def test_directories_are_staged_with_all_that_is_in_them(job):
    (job.where / "IN/a/empty").mkdir(parents=True)
    (job.where / "IN/a/x").write_text("x")
    (job.where / "IN/link").symlink_to("a/x")
    os.utime(job.where / "IN/a/x", ns=(1, 2_000_000_000))
    job("#DW stage_in type=directory source=IN destination=$DW_JOB_PRIVATE/in\n"
        "#DW stage_out type=directory source=$DW_JOB_PRIVATE destination=OUT\n"
        "echo new > $DW_JOB_PRIVATE/in/a/y\n").ok()
    out = job.where / "OUT/in"
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*")) == [
        "a", "a/empty", "a/x", "a/y", "link"]
    assert os.readlink(out / "link") == "a/x" and (out / "a/x").stat().st_mtime_ns == 2_000_000_000


def test_a_symbolic_link_takes_the_place_of_what_is_there(job):
    (job.where / "OUT").mkdir()
    (job.where / "OUT/file").write_text("older")
    (job.where / "OUT/link").symlink_to("older")
    job("#DW stage_out type=directory source=$DW_JOB_STRIPED destination=OUT\n"
        "ln -s there $DW_JOB_STRIPED/file; ln -s there $DW_JOB_STRIPED/link\n").ok()
    assert sorted(os.listdir(job.where / "OUT")) == ["file", "link"]
    assert {os.readlink(p) for p in (job.where / "OUT").iterdir()} == {"there"}


def test_a_link_that_cannot_be_staged_is_reported_in_words(job):
    (job.where / "OUT/file/is/a").mkdir(parents=True)
    result = job("#DW stage_out type=directory source=$DW_JOB_STRIPED destination=OUT\n"
        "ln -s there $DW_JOB_STRIPED/file\n")
    assert result.returncode == 3 and "[Errno" not in result.stderr
    assert "OUT/file: cannot be written: Is a directory" in result.stderr


def test_a_list_names_files_and_their_places(job):
    (job.where / "one").write_text("1")
    (job.where / "two").write_text("2")
    (job.where / "names").write_text(f"one\n# by another name\n{job.where}/two sub/second\n")
    job("#DW stage_in type=list source=names destination=$DW_JOB_STRIPED\n"
        "#DW stage_out type=list source=$DW_JOB_STRIPED/out.list destination=OUT\n"
        "cd $DW_JOB_STRIPED; cat one sub/second > both; echo both > out.list\n").ok()
    assert (job.where / "OUT/both").read_text() == "12"


def test_the_files_of_a_script_that_fails_are_staged_out(job):
    result = job("#DW stage_out type=file source=$DW_JOB_STRIPED/f destination=f\n"
        "echo partial > $DW_JOB_STRIPED/f; exit 7\n")
    assert result.returncode == 7 and (job.where / "f").read_text() == "partial\n"


def test_without_its_input_a_script_is_not_run(job):
    result = job("#DW stage_in type=file source=gone destination=$DW_JOB_STRIPED/gone\n"
        "touch ran\n")
    assert result.returncode == 3 and list(job.tier.iterdir()) == []
    assert "job.sh:3: #DW stage_in: " in result.stderr and "gone: no such file" in result.stderr
    assert not (job.where / "ran").exists()


def test_what_cannot_be_staged_out_is_kept_and_recovered(job, weir):
    lines = ("#DW stage_out type=file source=$DW_JOB_STRIPED/f destination=place/f\n"
             "#DW stage_out type=file source=$DW_JOB_STRIPED/g destination=g\n"
             "echo kept > $DW_JOB_STRIPED/f; echo other > $DW_JOB_STRIPED/g; echo > place\n")
    result = job(lines)
    (instance,) = job.tier.iterdir()
    assert result.returncode == 3 and f"weir stage recover {instance}" in result.stderr
    assert (job.where / "g").read_text() == "other\n"
    (job.where / "place").unlink()
    assert "11 bytes staged out" in weir("stage", "recover", instance).ok().stdout
    assert (job.where / "place/f").read_text() == "kept\n" and not instance.exists()


def test_more_input_than_the_capacity_is_refused(job):
    (job.where / "big").write_bytes(bytes(1_000_001))
    result = job("#DW stage_in type=file source=big destination=$DW_JOB_STRIPED/big\n")
    assert result.returncode == 3 and "job.sh:2: #DW jobdw: capacity=0.001 GB" in result.stderr


def test_a_tier_without_the_space_is_refused_and_the_user_may_say_what_is_needed(job):
    job("", "--capacity", "1MB").ok()
    result = job("", "--capacity", "900PB")
    assert result.returncode == 3 and "GB free; name another directory with --tier" in result.stderr
    assert job("", "--capacity", "much").returncode == 2


def test_a_job_of_several_nodes_is_refused(job, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    result = job("touch ran\n")
    assert result.returncode == 2 and "the job has 2 nodes" in result.stderr


def test_a_script_that_asks_for_several_nodes_is_refused_unless_it_has_one(job, monkeypatch):
    result = job("#SBATCH -N 4\ntouch ran\n")
    assert result.returncode == 2 and "job.sh:3: the job has 4 nodes (#SBATCH)" in result.stderr
    assert not (job.where / "ran").exists() and list(job.tier.iterdir()) == []
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")  # sbatch -N 1 job.sh
    job("#SBATCH -N 4\ntouch ran\n").ok()


def test_an_option_behind_the_script_is_warned_of(job):
    result = job("echo $1\n", arguments=["--keep"]).ok()
    assert result.stdout == "--keep\n" and list(job.tier.iterdir()) == []
    assert "--keep is after job.sh and is passed to the script" in result.stderr
    assert "is passed to the script" not in job("true\n", arguments=["--", "--keep"]).ok().stderr


def test_an_access_mode_that_was_not_asked_for_has_no_variable(job, weir):
    (job.where / "job.sh").write_text("#DW jobdw type=scratch access_mode=private capacity=1\n"
        "#DW stage_in type=file source=job.sh destination=$DW_JOB_STRIPED/x\n")
    result = weir("stage", "script", "--tier", job.tier, "job.sh")
    assert result.returncode == 3 and "DW_JOB_STRIPED is not set; #DW jobdw has not this" in (
        result.stderr)


def test_the_instance_of_a_killed_job_is_finished(job, weir):
    (job.where / "job.sh").write_text(JOBDW
        + "#DW stage_out type=file source=$DW_JOB_STRIPED/f destination=f\n"
          "echo all > $DW_JOB_STRIPED/f; echo > ready; exec sleep 60\n")
    running = subprocess.Popen([sys.executable, "-m", "weir", "stage", "script", "--tier",
        str(job.tier), "job.sh"], cwd=job.where, start_new_session=True)
    while not (job.where / "ready").exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    (instance,) = job.tier.iterdir()
    assert json.loads((instance / "instance.json").read_text())["where"] == str(job.where)
    weir("stage", "recover", instance).ok()
    assert (job.where / "f").read_text() == "all\n" and list(job.tier.iterdir()) == []


def test_sigterm_goes_to_the_script_and_its_files_are_staged_out(job):
    (job.where / "job.sh").write_text(JOBDW
        + "#DW stage_out type=file source=$DW_JOB_STRIPED/f destination=f\n"
          "trap 'echo end >> $DW_JOB_STRIPED/f; exit 3' TERM\n"
          "echo begin > $DW_JOB_STRIPED/f; echo > ready; while :; do sleep 0.01; done\n")
    running = subprocess.Popen([sys.executable, "-m", "weir", "stage", "script", "--tier",
        str(job.tier), "job.sh"], cwd=job.where)
    while not (job.where / "ready").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.terminate()
    assert running.wait(300) == 3 and (job.where / "f").read_text() == "begin\nend\n"


def test_sigterm_before_the_script_has_begun_goes_to_it_as_well(job):
    """The signal comes where weir is about to start the script."""
    (job.where / "job.sh").write_text(JOBDW + "while :; do sleep 0.01; done\n")
    (job.where / "early.py").write_text(
        "import os, signal, subprocess, sys\n"
        "from weir.cli import main\n"
        "class Popen(subprocess.Popen):\n"
        "    def __init__(self, words, **options):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        super().__init__(words, **options)\n"
        "subprocess.Popen = Popen\n"
        "sys.exit(main())\n")
    done = subprocess.run([sys.executable, "early.py", "stage", "script", "--tier",
        str(job.tier), "job.sh"], cwd=job.where, timeout=300, capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr


def test_what_is_no_instance_is_refused(weir, tmp_path):
    result = weir("stage", "recover", tmp_path)
    assert result.returncode == 3 and "neither a tier of the layer stage nor" in result.stderr
    (tmp_path / "instance.json").write_text("{")
    result = weir("stage", "recover", tmp_path)
    assert result.returncode == 3 and "not an instance" in result.stderr
    result = weir("stage", "recover", tmp_path / "gone")
    assert result.returncode == 3 and "gone: no such directory" in result.stderr


def test_what_is_no_tier_is_reported(weir, tmp_path):
    for path, why in ((tmp_path / "gone", "no such directory"),
            (tmp_path, "no rule with the layer stage has used it")):
        result = weir("stage", "status", path)
        assert result.returncode == 3 and f"{path}: is no tier: {why}" in result.stderr
