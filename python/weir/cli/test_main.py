# SPDX-License-Identifier: Apache-2.0
"""Errors become one message and a status, here alone."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import pytest
from weir_process import clean_environment

import weir as package
from weir import Error, IncompleteError, InputError, NotThere, StorageError, UsageError
from weir.cli import _app, _main


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("x"), 2),
        (InputError("x"), 3),
        (NotThere("x"), 3),
        (StorageError("x"), 3),
        (IncompleteError("x"), 4),
        (Error("x"), 3),
    ],
)
def test_each_kind_of_error_has_its_status_and_its_message(monkeypatch, capsys, error, status):
    def fail(**_):
        raise error

    monkeypatch.setattr(_app, "app_for", lambda _: fail)
    assert _main.main() == status
    assert capsys.readouterr().err == "weir: x\n"


def test_errors_are_also_the_builtin_they_resemble():
    assert issubclass(UsageError, ValueError) and issubclass(StorageError, OSError)
    assert issubclass(NotThere, FileNotFoundError) and issubclass(InputError, ValueError)


@pytest.mark.parametrize(
    ("raised", "status"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141), (SystemExit(7), 7), (SystemExit(), 0),
        (SystemExit("text"), 2)],
)
def test_other_ends_have_the_status_a_shell_expects(monkeypatch, raised, status):
    def fail(**_):
        raise raised

    monkeypatch.setattr(_app, "app_for", lambda _: fail)
    assert _main.main() == status


@pytest.mark.parametrize("module", ["weir.cli._main", "weir.cli._app", "typer",
    "weir.cli.report_command"])
def test_an_interrupt_while_modules_are_imported_ends_without_a_traceback(module):
    """The signal comes as the import of a module begins."""
    done = subprocess.run([sys.executable, "-c", f"""
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv[:] = ["weir", "report", "--help"]
from weir.cli import main
sys.exit(main())
"""], capture_output=True, text=True, env=clean_environment(), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_fault_of_weir_shows_where_and_gives_70(monkeypatch, capsys):
    def fail(**_):
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(_app, "app_for", lambda _: fail)
    assert _main.main() == 70
    said = capsys.readouterr().err
    assert "deep inside" in said and "internal error of weir" in said


@pytest.mark.parametrize("verb", ["trace", "run", "assign", "env", "report", "doctor"])
def test_each_verb_explains_itself(weir, verb):
    assert weir(verb, "--help").ok().stdout.startswith(f"Usage: weir {verb}")
    assert weir(verb, "-h").ok().stdout == weir(verb, "--help").stdout


def test_without_a_verb_there_is_help(weir):
    done = weir()
    assert "Usage: weir" in done.stdout + done.stderr and done.returncode in (0, 2)


def test_a_verb_that_does_not_exist_is_usage(weir):
    done = weir("tracce")
    assert done.returncode == 2 and "tracce" in done.stderr


def test_the_version_is_the_packages(weir):
    assert weir("--version").ok().stdout == f"weir {package.__version__}\n"
    assert package.__version__[0].isdigit() and package.__version__ != "0+unknown"


def test_the_module_is_the_command(execute):
    assert execute([sys.executable, "-m", "weir", "--version"]).ok().stdout.startswith("weir ")


def test_a_closed_pipe_is_no_fault():
    command = os.path.join(os.path.dirname(sys.executable), "weir")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([command, "trace", "--help"], stdout=writer, stderr=subprocess.PIPE,
        env=clean_environment(), timeout=300)
    os.close(writer)
    assert (
        b"Traceback" not in done.stderr
        and b"fault" not in done.stderr
        and b"Exception" not in done.stderr
    )
    assert done.returncode == _main.PIPE_CLOSED  # 1 would be "findings"


def test_a_full_disk_behind_standard_output_is_said(execute):
    command = os.path.join(os.path.dirname(sys.executable), "weir")
    done = execute(["sh", "-c", f"{command} --version > /dev/full"])
    assert done.returncode == 3 and done.stderr.startswith(
        "weir: standard output cannot be written: No space left on device")


def test_a_full_disk_in_the_middle_of_printing_is_no_fault_of_weir(monkeypatch, capsys):
    def fail(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_app, "app_for", lambda _: fail)
    assert _main.main() == 3
    assert capsys.readouterr().err.startswith("weir: standard output cannot be written")


def test_launching_imports_nothing_slow():
    code = (
        "import sys, weir.capture._launch, weir.capture._shell; from weir.cli._app import app_for; "
        "app_for([]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
        timeout=300)
    slow = {"numpy", "rich", "elftools", "importlib.metadata", "weir.analysis", "weir.trace",
        "ctypes"}
    assert not slow & set(done.stdout.split())


def test_names_that_the_terminal_has_no_characters_for_are_printed_all_the_same(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(_app, "app_for", lambda _: lambda **_: print("\u65e5 \udcff"))
    assert _main.main() == 0
    assert written.getvalue() == b"\\u65e5 \\udcff\n"


def test_a_native_library_that_is_not_built_is_said_in_a_line():
    from weir._native import LibraryMissing, library_path

    with pytest.raises(LibraryMissing, match="not built; run `make build`") as raised:
        library_path("libweir-no-such.so")
    assert _main.status_of(raised.value) == _main.BAD_INPUT
