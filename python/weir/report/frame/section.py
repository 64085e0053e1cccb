# SPDX-License-Identifier: Apache-2.0
"""What a page is made of: sections, each with its text and what its script draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateNotFound
from markupsafe import Markup

from weir.report.frame.amounts import FILTERS


@dataclass(frozen=True)
class Section:
    """One chapter of the page. name: its anchor. body: finished HTML; everything else is escaped
    where it is shown.

    data: what scripts read, under the section's name; blobs: packed numbers by name, as text.
    brief: the title in the list of sections.
    """

    name: str
    title: str
    body: Markup
    data: Mapping[str, Any] = field(default_factory=dict)
    blobs: Mapping[str, str] = field(default_factory=dict)
    brief: str = ""


class _Assets(BaseLoader):
    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:
        try:
            return asset(template), None, None
        except FileNotFoundError:
            raise TemplateNotFound(template) from None


def asset(name: str) -> str:
    """A file of this package's directory `assets`."""
    return files("weir.report.html").joinpath("assets", name).read_text("utf-8")


@cache
def _environment() -> Environment:
    made = Environment(loader=_Assets(), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True)
    made.filters.update(FILTERS)
    return made


def rendered(template: str, **values: Any) -> Markup:
    """A template of `assets` with its values, all of them escaped but those that are Markup."""
    return Markup(_environment().get_template(template).render(**values))
