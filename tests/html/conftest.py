# SPDX-License-Identifier: Apache-2.0
"""A run to make a page of, and the browser that opens it: Debian's Chromium without a window,
driven by selenium."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from weir_pages import STEPS, Opened, write_step
from weir_process import limit

from weir.report import build
from weir.report.html import write_html


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory) -> Path:
    """Three steps of six ranks on a dozen files."""
    run = tmp_path_factory.mktemp("plain") / "forecast"
    names = [f"/scratch/an/TRAJHR00/trajspecL{i:03d}" for i in range(12)]
    for seed, step in enumerate(STEPS):
        write_step(run / step, seed, names)
    return run


@pytest.fixture(scope="session")
def page(plain_run, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("page") / "out.html"
    write_html(build(plain_run), out)
    return out


@pytest.fixture(scope="session")
def driver():
    """One Chromium for all tests; it logs what pages say to the console and every request they
    make."""
    from selenium import webdriver

    browser, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not chromedriver:
        pytest.fail("chromium and chromedriver are needed: run `make install-deps` (packages "
                    "chromium and chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    started.set_page_load_timeout(limit(60))
    started.set_script_timeout(limit(30))
    yield started
    started.quit()


@pytest.fixture
def opened(driver, page) -> Opened:
    made = Opened(driver, page)
    made.shape(1280)
    return made
