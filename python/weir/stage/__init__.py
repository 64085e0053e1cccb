# SPDX-License-Identifier: Apache-2.0
"""Data on a fast tier: job scripts with DataWarp directives."""

from weir.stage.copying import Progress
from weir.stage.directives import Job, Staging, read_directives
from weir.stage.instance import Instance, finish, run_script
from weir.stage.signals import show

__all__ = ["Instance", "Job", "Progress", "Staging", "finish", "read_directives", "run_script",
    "show"]
