# SPDX-License-Identifier: Apache-2.0
"""``weir env``: lines for a shell to evaluate, for job scripts that cannot be wrapped.

Nothing but such lines goes to standard output, whatever a path contains.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from weir._errors import UsageError
from weir.capture._environment import (
    PRELOAD_VARIABLE,
    VARIABLES,
    rules_variables,
    tracing_variables,
    without_library,
)
from weir.capture._launch import Options, preload_library, prepare
from weir.capture._run import finish_env_step


def _csh_quote(text: str) -> str:
    """Quoted for csh, which expands ! and ends a string at a line's end even between single quotes.
    """
    quoted = text.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n")
    return f"'{quoted}'"


def _sh_set(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _csh_set(name: str, value: str) -> str:
    return f"setenv {name} {_csh_quote(value)};"


_SETTERS: dict[str, Callable[[str, str], str]] = {"sh": _sh_set, "csh": _csh_set}
_UNSETTERS = {"sh": "unset {}", "csh": "unsetenv {};"}
SHELLS = tuple(_SETTERS)


def check_shell(shell: str) -> str:
    if shell not in SHELLS:
        raise UsageError(
            f"--shell {shell}: one of {', '.join(SHELLS)} is known; sh is for bash, dash, ksh and "
            f"zsh, csh for tcsh")
    return shell


def begin_lines(options: Options, environ: Mapping[str, str], shell: str,
        rules: str | None = None) -> list[str]:
    """Make the step and return the lines that trace what the shell starts from now on into it,
    under compiled rules if there are any.

    Completes the step that an earlier ``weir env`` began in this environment. Raises as prepare()
    does.
    """
    step = prepare(options, environ, None, rules)
    finish_env_step(environ.get("WEIR_TRACE_DIR"))
    variables = tracing_variables(environ, step.library, step.directory, options.level,
        step.job.budget_bytes, options.share)
    if rules is not None:
        variables |= rules_variables(environ, step.library, rules)
    return [_SETTERS[shell](name, value) for name, value in variables.items()]


def rules_lines(environ: Mapping[str, str], shell: str, rules: str) -> list[str]:
    """The lines that give layers to what the shell starts from now on; tracing stays as it is.
    Raises InputError."""
    return [_SETTERS[shell](name, value) for name, value in rules_variables(environ,
        preload_library(), rules).items()]


def end_lines(environ: Mapping[str, str], shell: str) -> list[str]:
    """The lines that end tracing in a shell: LD_PRELOAD is left with what it held beside weir's
    library."""
    lines = [_UNSETTERS[shell].format(v.name) for v in VARIABLES if v.launcher]
    preload = without_library(environ.get(PRELOAD_VARIABLE, ""))
    lines.append(_SETTERS[shell](PRELOAD_VARIABLE, preload) if preload
        else _UNSETTERS[shell].format(PRELOAD_VARIABLE))
    return lines
