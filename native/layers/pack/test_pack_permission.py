# SPDX-License-Identifier: Apache-2.0
"""Who may not write to a directory makes, removes and renames no packed files in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
RULES = ("weir-rules 1\n"
         "rule source=test:1 name=plot_* stack=pack:name=plots.zip:always=1|system\n")


@pytest.fixture
def shell(preload):
    """``shell(script)``: standard error and output of a script of nobody's under the layer."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    with tempfile.TemporaryDirectory(prefix="weir-test-") as top:
        os.chmod(top, 0o755)
        shutil.copytree(Path(preload).parent, f"{top}/lib", ignore=lambda _, names: [
            name for name in names if not name.endswith(".so") and not name.startswith("weir-")])
        directory = Path(top) / "d"
        directory.mkdir()
        os.chown(directory, 65534, 65534)
        env = {**os.environ, "LD_PRELOAD": f"{top}/lib/{Path(preload).name}", "WEIR_JOB": job,
               "WEIR_RULES": RULES, "LC_ALL": "C"}

        def run(script, weir=True, user=NOBODY):
            bare = {key: value for key, value in env.items() if weir or key != "LD_PRELOAD"}
            return subprocess.run([*user, "bash", "-c", script], env=bare, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory, timeout=300,
                check=False).stdout

        yield run
    for user in (0, 65534):
        shutil.rmtree(f"/dev/shm/weir.{user}.{job}", ignore_errors=True)


SCRIPT = """
cp /etc/hostname plot_a; chmod 500 .
cp /etc/hostname plot_b; rm -f plot_a; mv plot_a plot_c; ls
chmod 700 .; mv plot_a plot_c; cp /etc/hostname plot_d; ls; rm plot_c plot_d; ls
"""


def test_a_read_only_directory_is_respected(shell):
    said = shell(SCRIPT)
    assert said == shell(SCRIPT, weir=False)
    assert said.count("Permission denied") == 3 and said.endswith("plot_a\nplot_c\nplot_d\n")


IN_ONE_PROCESS = """
python3 - <<'EOF'
import os
def status(call, *arguments):
    try: call(*arguments); return "ok"
    except OSError as error: return error.strerror
make = lambda name: os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
print(status(make, "plot_e"))
os.chmod(".", 0o500)
print(status(make, "plot_f"), status(os.unlink, "plot_e"), status(make, "plot_e"))
os.chmod(".", 0o700)
print(status(make, "plot_f"), status(os.unlink, "plot_e"), status(os.unlink, "plot_f"))
EOF
"""


def test_a_process_sees_what_it_has_changed_itself(shell):
    said = shell(IN_ONE_PROCESS)
    assert said == shell(IN_ONE_PROCESS, weir=False)
    assert said.splitlines() == ["ok", "Permission denied Permission denied ok", "ok ok ok"]


OF_ROOT = "chown 0 .; chmod 1777 .; cp /etc/hostname plot_a; cp /etc/hostname plot_b"
OF_NOBODY = """
cp /etc/hostname plot_own
rm -f plot_a; mv plot_b plot_c; mv plot_own plot_b; ls; mv plot_own plot_d; rm plot_d; ls
"""


def test_the_sticky_bit_of_a_directory_is_respected(shell):
    """Who owns neither the file nor the directory leaves its name alone."""
    said = []
    for weir in (True, False):
        assert shell(OF_ROOT, weir, ()) == ""
        if weir:
            shell("chmod 666 plots.zip", False, ())
        said.append(shell(OF_NOBODY, weir))
        shell("rm plot*", False, ())
    assert said[0] == said[1]
    assert said[0].count("Operation not permitted") == 3
    assert said[0].endswith("plot_a\nplot_b\nplot_own\nplot_a\nplot_b\n")


IN_ANOTHER_FILE = """
python3 - <<'EOF'
import os
def status(call, *arguments):
    try: return call(*arguments)
    except OSError as error: return error.strerror
print(status(os.open, "plot_read", os.O_RDONLY | os.O_TRUNC))
with open("plot_both", "a") as f: f.write("more")
with open("plot_new", "w") as f: f.write("new")
print([(os.stat(f"plot_{name}").st_uid, os.stat(f"plot_{name}").st_size)
    for name in ("read", "both", "new")])
EOF
"""


def test_who_writes_to_a_file_of_another_user_does_not_own_it(shell):
    of_root = "echo some > plot_read; echo some > plot_both; chmod 666 plot_both"
    said = []
    for weir in (True, False):
        assert shell(of_root, weir, ()) == ""
        if weir:
            shell("chmod 666 plots.zip", False, ())
        said.append(shell(IN_ANOTHER_FILE, weir))
        shell("rm plot*", False, ())
    assert said[0] == said[1]
    assert said[0].splitlines() == ["Permission denied", "[(0, 5), (0, 9), (65534, 3)]"]
