# SPDX-License-Identifier: Apache-2.0
"""ruff and uv: programs in Rust that make some system calls by instructions of their own. Their
inputs are Python's own library, and a package that is made here."""

from __future__ import annotations

from harness.model import Step, Suite

_WHEEL = """
import zipfile
with zipfile.ZipFile("small-1.0-py3-none-any.whl", "w") as wheel:
    about = "small-1.0.dist-info/"
    wheel.writestr("small/__init__.py", "VALUE = 42\\n")
    for i in range(200):
        wheel.writestr(f"small/part{i}.py", f"VALUE = {i}\\n" * (i + 1))
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n")
    tags = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
    wheel.writestr(about + "WHEEL", f"Wheel-Version: 1.0\\nGenerator: none\\n{tags}")
    wheel.writestr(about + "RECORD", "")
"""
_INPUTS = """
import json, email, shutil, pathlib
for package in (json, email):
    shutil.copytree(pathlib.Path(package.__file__).parent, f"src/{package.__name__}",
        ignore=shutil.ignore_patterns("__pycache__"))
"""
# What is printed about layers is on standard error.
_SCRIPTS = {
    "check": "ruff check --isolated --cache-dir cache --exit-zero --output-format concise src"
        " 2>err | sort | sha256sum; ls cache | wc -l",
    "check again": "ruff check --isolated --cache-dir cache --exit-zero --output-format concise src"
        " 2>err | sort | sha256sum",
    "fix": "ruff check --isolated --cache-dir cache --exit-zero --fix --select ALL -q src"
        " >fixed 2>err; wc -l <fixed",
    "format": "ruff format --isolated --cache-dir cache src 2>err; ruff format --isolated"
        " --cache-dir cache --check src 2>err",
    "environment": "uv venv -q --offline --python {python} env 2>err || {{ cat err; false; }};"
        " ls env | sort",
    "install": "uv pip install -q --offline --no-index --python env/bin/python ./*.whl 2>err ||"
        " {{ cat err; false; }}; uv pip freeze -q --python env/bin/python 2>err;"
        " env/bin/python -c 'import small.part199; print(small.VALUE, small.part199.VALUE)'",
    "copy": "uv pip install -q --offline --no-index --reinstall --link-mode copy --python"
        " env/bin/python ./*.whl 2>err || {{ cat err; false; }};"
        " find env/lib -path '*small/*.py' | wc -l",
    "project": "uv init -q --offline --no-workspace --vcs none --python {python} project 2>err ||"
        " {{ cat err; false; }}; ls project | sort; cd project && uv lock -q --offline 2>err &&"
        " uv tree -q --offline 2>err; uv version -q --offline 2>err",
    "uninstall": "uv pip uninstall -q --python env/bin/python small 2>err; uv cache prune -q"
        " 2>err; find env/lib -path '*small*' | wc -l",
}


def _version(place):
    return ", ".join(sorted(path.name.removesuffix(".dist-info") for name in ("ruff", "uv")
        for path in place.python.parents[1].glob(f"lib/*/site-packages/{name}-*.dist-info")))


def _steps(place):
    environment = {"UV_CACHE_DIR": str(place.work / "uv-cache"), "HOME": str(place.work),
        "PYTHONDONTWRITEBYTECODE": "1", "UV_PYTHON_DOWNLOADS": "never",
        "PATH": f"{place.python.parent}:/usr/local/bin:/usr/bin:/bin"}
    for name, script in (("wheel", _WHEEL), ("inputs", _INPUTS)):
        yield Step(name, ("/usr/bin/python3", "-c", script), prepare=True)
    for name, script in _SCRIPTS.items():
        yield Step(name, ("bash", "-ec", f"set -o pipefail; {script.format(python=place.python)}"),
            env=environment, compare_output=True)


SUITE = Suite(
    name="rust",
    title="ruff and uv: check with a cache, fix, format, environments, installations, a project",
    steps=_steps,
    version=_version,
    wheels=("ruff==0.17.6", "uv==0.13.9"),
    outputs=("src/**/*.py", "env/lib/**/small/*.py", "project/*.toml", "project/*.py"),
)
