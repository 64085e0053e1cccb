# SPDX-License-Identifier: Apache-2.0
"""weir query on the command line: forms of answers, mistakes, what is said of incomplete traces."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time

import pytest
from query_runs import write_run
from weir_process import clean_environment, signals_by_default

pq = pytest.importorskip("pyarrow.parquet", reason="needs the test extra, on Python 3.11 or newer")

QUESTION = (
    "SELECT file, sum(bytes) AS bytes, count(*) AS n FROM io WHERE step = 'traj0' GROUP BY file "
    "ORDER BY file"
)
ANSWER = [
    {"file": "/data/a", "bytes": 4096 + 100 + 4096, "n": 6},
    {"file": "/data/b", "bytes": 5000, "n": 5},
    {"file": "/data/f", "bytes": 816, "n": 2},
]


def test_an_answer_is_a_table(weir, two_steps):
    done = weir("query", two_steps, QUESTION).ok()
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["file", "bytes", "n"], ["/data/a", "8292", "6"], ["/data/b", "5000", "5"],
        ["/data/f", "816", "2"],
    ]  # fmt: skip


def test_a_long_table_is_cut_and_says_so(weir, two_steps):
    done = weir("query", two_steps, "--top", "1", QUESTION).ok()
    assert done.stdout.splitlines()[1:] == ["/data/a   8292  6",
        "2 more rows: --top 0 shows all, --format csv writes them"]


def test_the_same_answer_as_json_csv_and_parquet(weir, two_steps, tmp_path):
    assert json.loads(weir("query", two_steps, QUESTION, "--format", "json").ok().stdout) == ANSWER
    text = weir("query", two_steps, QUESTION, "--format", "csv").ok().stdout
    assert list(csv.DictReader(io.StringIO(text))) == [{k: str(v) for k, v in row.items()}
        for row in ANSWER]
    weir("query", two_steps, QUESTION, "--format", "parquet", "-o",
        tmp_path / "answer.parquet").ok()
    assert pq.read_table(tmp_path / "answer.parquet").to_pylist() == ANSWER
    assert [path.name for path in tmp_path.iterdir()] == ["answer.parquet"]


def test_what_a_form_cannot_hold(weir, two_steps, tmp_path):
    done = weir("query", two_steps, "SELECT list(bytes) AS l FROM events", "--format", "csv", "-o",
        tmp_path / "x.csv")
    assert done.returncode == 2 and "--format csv cannot hold" in done.stderr and list(tmp_path
        .iterdir()) == []
    twice = weir("query", two_steps, "SELECT a.op, b.op FROM operations a, operations b LIMIT 1",
        "--format", "json")
    assert (
        twice.returncode == 2
        and "two columns are called 'op'" in twice.stderr
        and twice.stdout == ("")
    )
    odd = (
        "SELECT 1.0 / 0 AS much, 'nan'::DOUBLE AS nothing, 0.5 AS half, DATE '2026-01-02' AS day, "
        "NULL AS n"
    )
    assert json.loads(weir("query", two_steps, odd, "--format", "json").ok().stdout) == [
        {"much": None, "nothing": None, "half": 0.5, "day": "2026-01-02", "n": None}
    ]


def test_what_is_not_installed_is_reported(execute, two_steps):
    for package in ("duckdb", "pyarrow"):
        code = (
            f"import sys; sys.modules[{package!r}] = None; sys.argv = ['weir', 'query', "
            f"{str(two_steps)!r}, 'SELECT 1']; "
        )
        done = execute([sys.executable, "-c", code + "from weir.cli import main; sys.exit(main())"])
        assert (
            done.returncode == 2
            and f"{package} is needed" in done.stderr
            and "weir-io[query]" in done.stderr
        )


@pytest.mark.parametrize("words", [["query", "RUN", QUESTION, "--format", "csv"],
    ["export", "RUN", "--to", "csv", "-o", "OUT"]])  # fmt: skip
def test_a_command_imports_no_pandas(execute, two_steps, tmp_path, words):
    """It takes as long to import as pyarrow and DuckDB together, and no command makes data
    frames."""
    pytest.importorskip("pandas")
    given = {"RUN": str(two_steps), "OUT": str(tmp_path / "out")}
    argv = ["weir", *(given.get(word, word) for word in words)]
    code = (f"import sys; sys.argv = {argv!r}; from weir.cli import main; status = main(); "
            f"assert 'pyarrow.dataset' in sys.modules; print('pandas' in sys.modules, status)")
    assert execute([sys.executable, "-c", code]).ok().stdout.splitlines()[-1] == "False 0"


def test_an_empty_answer_is_one(weir, two_steps):
    nothing = "SELECT op, bytes FROM events WHERE bytes < 0"
    assert json.loads(weir("query", two_steps, nothing, "--format", "json").ok().stdout) == []
    assert weir("query", two_steps, nothing).ok().stdout.split() == ["op", "bytes"]


def test_the_question_may_come_from_standard_input(weir, two_steps):
    assert json.loads(weir("query", two_steps, "-", "--format", "json", input=QUESTION)
        .ok().stdout) == ANSWER


def test_a_table_may_be_asked_for_more_than_once_in_a_question(weir, two_steps):
    both = (
        "SELECT count(*) AS n FROM events a JOIN events b ON a.start_ns = b.start_ns AND a.pid = "
        "b.pid AND a.node = b.node WHERE a.step = 'traj0'"
    )
    assert json.loads(weir("query", two_steps, both, "--format", "json").ok().stdout) == [{"n": 15}]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT bytse FROM events", ['"bytse"', "LINE 1", "bytes"]),
        ("SELECT\n count( FROM events", ["LINE 2"]),
        ("SELECT 1 AS a,\n bytse FROM events", ["LINE 2:  bytse", "^"]),
        ("SELECT * FROM evnets", ["evnets", "events", "LINE 1"]),
        ("SELECT file + 1 FROM files", ["the query:"]),
        ("/* nothing */", ["the query returns no rows"]),
    ],
)
def test_a_mistake_is_reported_with_its_place(weir, two_steps, question, words):
    done = weir("query", two_steps, question)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert [word for word in words if word not in done.stderr] == []


def test_an_error_while_the_answer_is_made_leaves_no_file(weir, two_steps, tmp_path):
    done = weir("query", two_steps, "SELECT CAST(file AS INTEGER) x FROM events", "--format", "csv",
        "-o", tmp_path / "x.csv")
    assert done.returncode == 2 and "Could not convert" in done.stderr and "LINE 1" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_usage(weir, two_steps, tmp_path):
    for arguments, word in (
        ([two_steps], "--schema"), ([two_steps, "SELECT 1", "--schema"], "either SQL or --schema"),
        ([two_steps, "SELECT 1", "--format", "xml"], "csv"),
        ([two_steps, "SELECT 1", "--memory", "lots"], "DuckDB does not start"),
    ):  # fmt: skip
        done = weir("query", *arguments)
        assert done.returncode == 2 and word in done.stderr, done.stderr
    done = weir("query", tmp_path / "nothing", "SELECT 1")
    assert done.returncode == 3 and "no such directory" in done.stderr


def test_the_schema_names_every_table_and_column(weir, two_steps):
    from weir.query.schema import TABLES

    printed = weir("query", two_steps, "--schema").ok().stdout
    for table in TABLES:
        lines = f"\n{printed}".split(f"\n{table.name}: ")[1].split("\n\n")[0].splitlines()[1:]
        assert [line.split()[0] for line in lines] == [column.name for column in table.columns]


def test_steps_without_records_are_said(weir, two_steps):
    assert "min0: detail" in weir("query", two_steps, "SELECT count(*) FROM events").ok().stderr
    assert weir("query", two_steps, "SELECT count(*) FROM totals").ok().stderr == ""
    assert weir("query", two_steps / "traj0", "SELECT count(*) FROM events").ok().stderr == ""


def test_a_damaged_trace_is_answered_from_and_said(weir, two_steps, tmp_path):
    step = tmp_path / "run" / "traj0"
    step.mkdir(parents=True)
    for path in (two_steps / "traj0").iterdir():
        (step / path.name).write_bytes(path.read_bytes())
    (step / "n2.weir").write_bytes(b"nothing of a trace")
    done = weir("query", tmp_path / "run", "SELECT count(*) n FROM events", "--format", "json")
    assert done.returncode == 4 and json.loads(done.stdout) == [{"n": 9}]
    assert "INCOMPLETE" in done.stderr and "n2.weir" in done.stderr


def test_a_question_leaves_nothing_behind(weir, two_steps, tmp_path):
    weir("query", two_steps, "SELECT * FROM events ORDER BY duration_ns", "--memory", "64MB",
        cwd=tmp_path, env={"TMPDIR": str(tmp_path)}).ok()
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_a_question_is_what_it_is_elsewhere():
    duckdb = pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")
    from weir.query.run import interruptible

    for printed in (RuntimeError("Query interrupted"),
            duckdb.InterruptException("INTERRUPT Error: Interrupted!")):
        with pytest.raises(KeyboardInterrupt), interruptible():
            raise printed
    with pytest.raises(RuntimeError, match="another"), interruptible():
        raise RuntimeError("another")


def test_ctrl_c_while_duckdb_starts_is_no_fault(two_steps, monkeypatch):
    pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")
    from weir.query import open_run

    def interrupted(*_):
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("weir.query.run.dataset_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_run(two_steps).sql_reader("SELECT 1")


def test_ctrl_c_ends_a_question_that_would_not_end(two_steps):
    sql = "SELECT count(*) FROM range(100000000) a, range(100000000) b" + " " * (1 << 18)
    command = [sys.executable, "-m", "weir", "query", two_steps, "-"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    program = subprocess.Popen(command, **pipes, env=clean_environment(), **signals_by_default())
    # more than a pipe holds: when it is written, the program reads it
    program.stdin.write(sql.encode())
    program.stdin.close()
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    try:
        assert program.wait(timeout=300) == 130
        assert (program.stdout.read(), program.stderr.read()) == (b"", b"")
    finally:
        program.kill()


def test_two_questions_at_once_are_refused(weir, two_steps):
    done = weir("query", two_steps, "SELECT 1; SELECT 2 AS two")
    assert (
        done.returncode == 2
        and "has 2 statements" in done.stderr
        and "'SELECT 2 AS two'" in done.stderr
        and done.stdout == ("")
    )
    assert weir("query", two_steps, "SET threads = 1; SELECT 2 AS two;").ok().stdout.split() == [
        "two", "2"]


def test_what_memory_is_refused_in_weirs_words(weir, two_steps):
    done = weir("query", two_steps, "SELECT 1", "--memory", "1X")
    assert (
        done.returncode == 2
        and "with memory '1X' (a number with a unit is wanted, as in 512MB)" in done.stderr
    )
    little = weir("query", two_steps, "SELECT * FROM range(3000000) ORDER BY hash(range)",
        "--memory", "1MB")
    assert (
        little.returncode == 2
        and "--memory SIZE" in little.stderr
        and "SET memory_limit" not in little.stderr
    )


@pytest.mark.parametrize(("printed", "shown"), [("/tmp/\udcff\udcfe", r"/tmp/\xff\xfe"),
    ("\u65e5\udcff", "\u65e5\\xff"), ("\ud800", r"\ud800")])
def test_arguments_that_are_no_utf_8_are_shown_as_names_are(weir, tmp_path, printed, shown):
    run = write_run(tmp_path / "run",
        "step main wall=1\nnode n0\nprocess pid=1\nread /data/a at=0 for=10 bytes=1\n")
    job = run / "main" / "job.json"
    job.write_text(json.dumps({**json.loads(job.read_text()), "command": ["ls", printed],
        "cwd": printed}))
    done = weir("query", run, "SELECT command, cwd FROM steps", "--format", "json").ok()
    assert json.loads(done.stdout) == [{"command": f"ls {shown}", "cwd": shown}]
    weir("export", run, "--to", "csv", "-o", tmp_path / "csv").ok()


def test_a_question_that_is_no_utf_8_is_refused(weir, two_steps):
    done = weir("query", two_steps, "SELECT '\udcff'")
    assert done.returncode == 2 and "the query is not UTF-8" in done.stderr
