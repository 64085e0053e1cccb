# SPDX-License-Identifier: Apache-2.0
"""Command `weir tune`: rules that pay and those that do not, outputs, what becomes of the user's
files, and a tune that is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

COPY = """
import os, sys
source, target = os.open('in', os.O_RDONLY), os.open('out', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
while data := os.read(source, 4096): os.write(target, data)
with open('log', 'a') as log: log.write('done\\n')
"""


@pytest.fixture
def place(testfs):
    """A directory where each request takes 0.3 ms, with the input of COPY."""
    return filled(testfs("direct", data_us=300))


def filled(mount):
    (mount.backing / "in").write_bytes(bytes(range(256)) * 24_000)
    (mount.backing / "log").write_text("before\n")
    return mount


def listing(mount) -> dict[str, bytes]:
    return {str(one.relative_to(mount.backing)): one.read_bytes()
        for one in mount.backing.rglob("*") if one.is_file()}


def tune(weir, place, out, *words, program=COPY, **keywords):
    return weir("tune", "-o", out, "--dir", place.path, *words, "--", sys.executable, "-c", program,
        cwd=place.path, **keywords)


def test_rules_that_pay_are_kept_and_no_file_changes(weir, place, tmp_path):
    before, out = listing(place), tmp_path / "out"
    found = tune(weir, place, out, "--runs", 5).ok()
    assert found.stdout.startswith("With ") and "outputs are identical" in found.stdout
    assert listing(place) == before
    rules = tomllib.loads((out / "rules.toml").read_text())["rule"]
    assert {one["stack"] for one in rules} == {"bufa:1MiB:4"}
    assert all(Path(one["path"]).parent == place.path for one in rules)
    report = (out / "report.md").read_text()
    assert "| requests |" in report and "small-requests" in report
    state = json.loads((out / "tune.json").read_text())
    kinds = [one["kind"] for one in state["runs"]]
    assert kinds[:4] == ["plain", "tuned", "plain", "tuned"]
    requests = [one["figures"]["requests"] for one in state["runs"][:2]]
    assert requests[1] < requests[0] / 10
    assert all(set(one["outputs"]) == {"out", "log"} for one in state["runs"])
    place.reset()
    weir("run", "--rules", out / "rules.toml", "--", sys.executable, "-c", COPY,
        cwd=place.path).ok()
    assert place.stats().requests["write"] < 20


def test_a_healthy_program_has_nothing_to_change(weir, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "in").write_bytes(bytes(5 << 20))
    found = weir("tune", "-o", tmp_path / "out", "--", "cp", "in", "copy", cwd=work)
    assert found.returncode == 0 or found.stdout.startswith("No finding: "), found.stderr
    if not found.stdout.startswith("No finding: "):  # a busy machine
        assert found.stdout.startswith("Nothing worth changing: ")
        assert " of wall time, and no file, nor all files alike in name" in found.stdout
    assert os.listdir(work) == ["in"]
    assert tomllib.loads((tmp_path / "out" / "rules.toml").read_text()) == {}


def test_files_with_much_time_and_no_cause_are_named(weir, tmp_path):
    found = weir("tune", "-o", tmp_path / "out", "--", "dd", "if=/dev/zero", "of=zeros", "bs=16M",
        "count=20", cwd=tmp_path)
    waits = re.match(r"No finding: no rule of weir shortens this run, which waits [\d.]+ m?s of "
        r"[\d.]+ m?s \((\d+) %\) for I/O\. The file with the most I/O time takes ", found.stdout)
    assert waits, found.stdout
    assert (found.returncode, found.stderr.count("weir: run")) == (int(waits[1]) >= 50, 1)
    assert re.search(r" takes [\d.]+ m?s of the run \(\d+ %\): zeros, 2\d calls "
        r"\(20 write [\d.]+ m?s, .*\)\. Would help: fewer bytes", found.stdout), found.stdout
    assert "\n- " in (tmp_path / "out" / "report.md").read_text().split("## Other files")[1]
    assert tomllib.loads((tmp_path / "out" / "rules.toml").read_text()) == {}


# Its output says whether a layer is there.
FAITHLESS = COPY + """
with open('out', 'a') as out: out.write('x' * ('WEIR_RULES' in os.environ))
"""


def test_a_rule_that_changes_an_output_is_dropped(weir, place, tmp_path):
    found = tune(weir, place, tmp_path / "out", "--runs", 6, program=FAITHLESS).ok()
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert any(why == "output out: its bytes differ" for why in state["dropped"].values())
    assert "out" not in [Path(one["path"]).name
        for one in tomllib.loads((tmp_path / "out" / "rules.toml").read_text()).get("rule", [])]
    assert "dropped" in (tmp_path / "out" / "report.md").read_text(), found.stdout


STAMPED = COPY + """
import time
with open('stamp', 'w') as stamp: stamp.write(f'made at {time.time_ns()}\\n')
"""


def test_times_in_outputs_are_no_difference(weir, place, tmp_path):
    tune(weir, place, tmp_path / "out", "--runs", 4, program=STAMPED).ok()
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    digests = {one["outputs"]["stamp"]["digest"] for one in state["runs"]}
    assert len(digests) == len(state["runs"]) and not state["dropped"]


def test_one_plain_run_does_not_prove_outputs_with_times(weir, place, tmp_path):
    found = tune(weir, place, tmp_path / "out", "--runs", 2, program=STAMPED).ok()
    assert "1 output differs, such as stamp: more runs" in found.stdout


BROKEN = COPY + "\nsys.exit(3 * ('WEIR_RULES' in os.environ))"


def test_a_rule_under_which_the_command_fails_is_dropped(weir, place, tmp_path):
    found = tune(weir, place, tmp_path / "out", "--runs", 4, program=BROKEN).ok()
    assert "made the command fail)" in found.stdout and "did not pay" not in found.stdout
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert state["dropped"] and all("ended with status 3" in why
        for why in state["dropped"].values())


def test_a_command_that_fails_by_itself_is_refused(weir, place, tmp_path):
    refused = tune(weir, place, tmp_path / "out", program="import sys; sys.exit(7)")
    assert refused.returncode == 3 and "ended with status 7 without any rules" in refused.stderr


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_an_interrupted_tune_goes_on(weir, place, tmp_path, by):
    """Ended after its first run: the user's files are what they were, and runs are kept."""
    before, out = listing(place), tmp_path / "out"
    words = [Path(sys.executable).parent / "weir", "tune", "-o", out, "--dir", place.path,
        "--runs", "4", "--", sys.executable, "-c", COPY]
    with subprocess.Popen(words, cwd=place.path, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while not (out / "tune.json").exists() and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, by)
    kept = json.loads((out / "tune.json").read_text())["runs"]
    left = listing(place)
    if by == signal.SIGKILL:  # its copy is removed by the next call
        assert any(path.startswith(".weir-tune") for path in left)
        left = {path: data for path, data in left.items() if not path.startswith(".weir-tune")}
    assert left == before
    other = tune(weir, place, tmp_path / "other", "--runs", 2).ok()
    assert (f"with -o {out} continues it" in other.stderr) == (by == signal.SIGKILL)
    own = tune(weir, place, out, "--runs", 4).ok()
    assert "was interrupted" not in own.stderr
    state = json.loads((out / "tune.json").read_text())
    assert state["runs"][: len(kept)] == kept and len(state["runs"]) >= 3
    assert listing(place) == before


def test_a_directory_of_another_tune_is_refused(weir, place, tmp_path):
    out = tmp_path / "out"
    tune(weir, place, out, "--runs", 2).ok()
    refused = tune(weir, place, out, program="pass")
    assert refused.returncode == 2 and "another command" in refused.stderr
    (place.backing / "in").write_bytes(b"changed")
    refused = tune(weir, place, out, "--runs", 3)
    assert refused.returncode == 3 and "changed since" in refused.stderr


def test_a_command_that_leaves_its_copy_is_refused(weir, place, tmp_path):
    name = str(place.path).replace("/", "%")
    program = f"open({name!r}.replace('%', '/') + '/log', 'a').write('more')"
    refused = tune(weir, place, tmp_path / "out", program=program)
    assert refused.returncode == 2 and "instead of in its copy" in refused.stderr


def test_paths_of_the_directory_are_those_of_the_copy(weir, place, tmp_path):
    program = "import sys; open(sys.argv[1], 'w').write('x')"
    weir("tune", "-o", tmp_path / "out", "--dir", place.path, "--", sys.executable, "-c", program,
        place.path / "made").ok()
    assert not (place.backing / "made").exists()


def test_files_of_an_archive_are_compared_where_it_is_allowed(weir, testfs, tmp_path):
    """Half of them are written under another name, and renamed."""
    mount = testfs("direct", metadata_us=300)
    program = ("import os\nfor n in range(300):\n    end = n % 2 * '.part'\n"
        "    with open(f'p{n:05}{end}', 'w') as file: file.write(str(n) * 100)\n"
        "    if end: os.rename(f'p{n:05}{end}', f'p{n:05}')")
    words = ["--runs", 3, "--dir", mount.path]
    command = ["--", sys.executable, "-c", program]
    found = weir("tune", "-o", tmp_path / "a", *words, *command, cwd=mount.path).ok()
    assert found.stdout.startswith("No rule was tried. Not tried")
    assert "--allow pack" in found.stdout
    weir("tune", "-o", tmp_path / "b", *words, "--allow", "pack", *command, cwd=mount.path).ok()
    state = json.loads((tmp_path / "b" / "tune.json").read_text())
    tuned = [one for one in state["runs"] if one["kind"] == "tuned"]
    assert tuned and not state["dropped"]
    assert all(len(one["outputs"]) == 300 for one in state["runs"])
    requests = {one["kind"]: one["figures"]["requests"] for one in state["runs"]}
    assert requests["tuned"] < requests["plain"] / 5
    mount.reset()
    weir("run", "--rules", tmp_path / "b" / "rules.toml", *command, cwd=mount.path).ok()
    assert mount.stats().requests["create"] < 10


def test_disk_space_is_checked_first(weir, tmp_path, place):
    with open(place.backing / "huge", "wb") as file:
        file.truncate(1 << 50)
    refused = tune(weir, place, tmp_path / "out")
    assert refused.returncode == 3 and "the largest file is huge" in refused.stderr


def test_what_a_later_step_reads_comes_to_its_place(weir, place, tmp_path):
    """It may be the result as well."""
    first = "import os; f = os.open('mid', os.O_WRONLY | os.O_CREAT)\n" \
        "for n in range(1000): os.write(f, bytes(4096))"
    second = "import os; f = os.open('mid', os.O_RDONLY)\nwhile os.read(f, 4096): pass"
    script = f'"{sys.executable}" -c "{first}"\n"{sys.executable}" -c "{second}"\n'
    weir("tune", "-o", tmp_path / "out", "--dir", place.path, "--runs", 4, "--allow", "stage", "--",
        "sh", "-c", script, cwd=place.path).ok()
    assert "drain=never" not in (tmp_path / "out" / "rules.toml").read_text()


def test_a_file_behind_a_link_does_not_change(weir, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "restart").write_bytes(b"before")
    os.symlink(tmp_path / "restart", work / "restart")
    program = "open('restart', 'r+b').write(b'after')"
    weir("tune", "-o", tmp_path / "out", "--", sys.executable, "-c", program, cwd=work).ok()
    assert (tmp_path / "restart").read_bytes() == b"before"
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert "restart" in state["runs"][0]["outputs"]


def test_each_run_gets_the_directory_and_the_standard_input(weir, place, tmp_path):
    program = COPY + "open('seen', 'w').write(os.environ['PWD'] + sys.stdin.read())"
    found = tune(weir, place, tmp_path / "out", "--runs", 3, program=program, input="namelist",
        env={**os.environ, "MODEL_DATA": f"{place.path}/data"}).ok()
    assert "MODEL_DATA in the environment" in found.stderr
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    sizes = {one["outputs"]["seen"]["bytes"] for one in state["runs"]}
    (work,) = {os.path.dirname(rule) for one in state["runs"] for rule in one["rules"]}
    assert len(state["runs"]) == 3 and sizes == {len(work) + len("namelist")}


RANDOM = COPY + """
import tempfile
os.close(tempfile.mkstemp(dir='.')[0])
with open('name', 'w') as name: name.write(tempfile.mktemp())
"""


def test_outputs_that_differ_in_each_run_drop_no_rule(weir, place, tmp_path):
    found = tune(weir, place, tmp_path / "out", "--runs", 4, program=RANDOM).ok()
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert not state["dropped"] and len(state["runs"]) == 4
    assert "identical but for" in found.stdout and "name, " in found.stdout


def test_rules_name_no_copy_where_the_path_has_special_characters(weir, place, tmp_path):
    work = place.path / 'of "x" [1] *'
    work.mkdir()
    (work / "in").write_bytes(bytes(6_000_000))
    weir("tune", "-o", tmp_path / "out", "--dir", work, "--runs", 2, "--", sys.executable, "-c",
        COPY, cwd=work).ok()
    for name in ("rules.toml", "report.md"):
        assert ".weir-tune" not in (tmp_path / "out" / name).read_text()
    rules = tomllib.loads((tmp_path / "out" / "rules.toml").read_text())["rule"]
    assert any(fnmatchcase(str(work / "in"), one["path"]) for one in rules)


@pytest.mark.parametrize(("words", "program"), [(["--minutes", 0], COPY), (["--runs", 2], STAMPED)])
def test_rules_that_are_not_proved_are_comments(weir, place, tmp_path, words, program):
    """The budget ended before they were run, or before an output that differs was explained."""
    tune(weir, place, tmp_path / "out", *words, program=program).ok()
    text = (tmp_path / "out" / "rules.toml").read_text()
    assert "# Not tested to the end" in text and "# [[rule]]" in text and not tomllib.loads(text)


def test_the_log_of_tune_itself_is_no_change(weir, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    words = [Path(sys.executable).parent / "weir", "tune", "-o", tmp_path / "out", "--", "sh", "-c",
        "echo done; echo > made"]
    with open(work / "tune.log", "wb") as log:
        subprocess.run(words, cwd=work, stdout=log, stderr=log, check=True)
    said = (work / "tune.log").read_text()  # "No finding" on a busy machine
    assert ("Nothing worth changing: " in said) != ("No finding: " in said), said
    assert sorted(os.listdir(work)) == ["tune.log"]


def test_one_tune_at_a_time_and_ctrl_c_prints_how_to_go_on(weir, tmp_path):
    work, began = tmp_path / "work", tmp_path / "began"
    work.mkdir()
    words = ["tune", "-o", tmp_path / "out", "--dir", work, "--", "sh", "-c",
        f"echo > {began}; exec sleep 600"]
    with subprocess.Popen([Path(sys.executable).parent / "weir", *words], cwd=work,
            stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            while not began.exists() and process.poll() is None:
                time.sleep(0.02)
            refused = weir(*words, cwd=work)
        finally:
            os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()[1].decode()
    assert refused.returncode == 2 and "another weir tune works there" in refused.stderr
    assert "before a run was complete: the same command begins again" in said
    assert process.returncode == 130
    assert os.listdir(work) == []


WEIR_FAILS = """
import os, sys
if {"trace", "--rules"} <= set(sys.orig_argv): os._exit(70)
"""


def test_a_failure_of_weir_itself_is_blamed_on_no_rule(weir, place, tmp_path):
    """Its own interpreter ends where rules are in force."""
    (tmp_path / "sitecustomize.py").write_text(WEIR_FAILS)
    before, out = listing(place), tmp_path / "out"
    failed = tune(weir, place, out, "--runs", 4,
        env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert failed.returncode == 70 and "not the command and not a rule" in failed.stderr
    state = json.loads((out / "tune.json").read_text())
    assert len(state["runs"]) == 1 and not state["dropped"] and listing(place) == before
    tune(weir, place, out, "--runs", 2).ok()


LINKING = COPY + "os.symlink('in' if 'WEIR_RULES' in os.environ else 'out', 'latest')"


def test_links_that_the_command_makes_are_compared(weir, place, tmp_path):
    tune(weir, place, tmp_path / "out", "--runs", 4, program=LINKING).ok()
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert "output latest: a link to in instead of a link to out" in state["dropped"].values()


MORE = COPY + """
os.makedirs('new', exist_ok=True)
open('new/more', 'w').write('x')
os.path.exists('old') and os.unlink('old')
"""


def test_results_are_kept_where_it_is_said(weir, place, tmp_path):
    (place.backing / "old").write_text("x")
    found = tune(weir, place, tmp_path / "out", "--runs", 3, "--keep", program=MORE).ok()
    assert "made or changed" in found.stdout.splitlines()[1]
    assert listing(place) == {"in": bytes(range(256)) * 24_000, "out": bytes(range(256)) * 24_000,
        "log": b"before\ndone\n", "new/more": b"x"}
    state = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert state["runs"][-1]["kind"] == "plain" or state["runs"][-1]["rules"]
    refused = tune(weir, place, tmp_path / "out", "--runs", 3, "--keep", program=MORE)
    assert refused.returncode == 3 and "--keep" in refused.stderr


def test_the_result_of_a_plain_run_is_kept_where_no_rule_is(weir, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    found = weir("tune", "-o", tmp_path / "out", "--keep", "--", "sh", "-c", "echo done > made",
        cwd=work).ok()
    assert "no rules" in found.stdout
    assert os.listdir(work) == ["made"] and (work / "made").read_text() == "done\n"


@pytest.mark.campaign
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_tune_with_keep_is_ended_at_any_time(weir, place, tmp_path, by):
    """Each call is ended a little later than the one before, until one comes to its end: the files
    are those of before or those of the whole run, each of them whole."""
    import random

    seed = int(os.environ.get("WEIR_TEST_SEED", time.time_ns() % 10**6))
    chance = random.Random(seed)
    before = listing(place)
    after = {**before, "out": before["in"], "log": b"before\ndone\n"}
    words = [Path(sys.executable).parent / "weir", "tune", "-o", tmp_path / "out", "--dir",
        place.path, "--runs", "4", "--keep", "--", sys.executable, "-c", COPY]
    limit = 1.0
    for _ in range(100):
        process = subprocess.Popen(words, cwd=place.path, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(chance.uniform(0.5, 1) * limit)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, by)
            process.wait()
        limit *= 1.15
        for path, data in listing(place).items():
            assert path.startswith(".weir-tune") or data in (before.get(path), after[path]), seed
    assert status == 0 and listing(place) == after, seed


def test_a_search_finds_the_block_size_of_fewest_requests(weir, place, tmp_path):
    """6,144,000 bytes: one request of 8 MiB and of 16 MiB reads all, and as many write it. The
    search that is interrupted goes on with what it has. On a busy machine runs with the fewest
    requests may take so long that the advised setting stays."""
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    tune(weir, place, out, "--runs", 4, "--search", 2).ok()
    kept = json.loads((out / "tune.json").read_text())["runs"]
    found = tune(weir, place, out, "--runs", 4, "--search", 16).ok()
    state = json.loads((out / "tune.json").read_text())
    assert state["runs"][: len(kept)] == kept
    searched = [one for one in state["runs"] if one["kind"] == "search"]
    assert len({json.dumps(one["setting"], sort_keys=True) for one in searched}) >= 8
    fewest = min(sum(cost["requests"] for cost in one["figures"]["by_rule"].values())
        for one in searched)
    (said,) = [line for line in found.stdout.splitlines() if line.startswith("Searched:")]
    stacks = {one["stack"] for one in tomllib.loads((out / "rules.toml").read_text())["rule"]}
    if "is measurably better" in said:
        assert stacks == {"bufa:1MiB:4"}
        return
    assert f"and {fewest} requests" in said, said
    assert stacks <= {one for size in (8, 16) for one in
        (f"bufa:{size}MiB:{n}" for n in (1, 2, 4, 8, 16))}


SIZED = """
import os, sys
size, target = int(sys.argv[1]), os.open('out', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
data = open('in', 'rb').read()
for at in range(0, len(data), size): os.write(target, data[at:at + size])
"""


def test_values_of_the_command_are_varied(weir, testfs, tmp_path):
    """Requests of 3 ms: the values differ by more than a busy machine adds to a run."""
    pytest.importorskip("optuna")
    out, place = tmp_path / "out", filled(testfs("direct", data_us=3000))
    found = weir("tune", "-o", out, "--dir", place.path, "--runs", 2, "--search", 6, "--vary",
        "size=40000,35000,8000000", "--", sys.executable, "-c", SIZED, "{size}",
        cwd=place.path).ok()
    assert "size=8000000" in found.stdout
    assert "# the command has 8000000 for {size}" in (out / "rules.toml").read_text()


@pytest.mark.parametrize(("words", "why"), [(["--vary", "n=1,2"], "--search N"),
    (["--vary", "n=1", "--search", "3"], "two values"),
    (["--vary", "n=1,2", "--search", "3"], "no {n}")])
def test_what_cannot_be_varied_is_refused(weir, tmp_path, words, why):
    refused = weir("tune", "-o", tmp_path / "out", "--dir", tmp_path, *words, "--", "true")
    assert refused.returncode == 2 and why in refused.stderr
