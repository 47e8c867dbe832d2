"""Debian's chromium, without a window, and what is measured in its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """A browser; where there is none the test is skipped, or fails under TACIT_NOTHING_SKIPPED=1."""
    missing = "" if Path(CHROMIUM).exists() else f"there is no {CHROMIUM}: apt-get install chromium"
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing = "playwright is not installed: pip install playwright"
    if missing:
        (pytest.fail if os.environ.get("TACIT_NOTHING_SKIPPED") == "1" else pytest.skip)(missing)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        yield opened
        opened.close()


def watch(page: Any) -> None:
    """Keep in `page.complaints` whatever it runs that it should not, and what it complains of."""
    page.complaints = []
    page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda said: page.complaints.append(said.text) if "Security" in said.text else None)


def least_contrast(page: Any, where: str, *, skip_hidden: bool) -> float:
    """The least contrast of text with its background (WCAG's ratio) among elements that are `where`, images apart."""
    found: float = page.evaluate(_LEAST_CONTRAST, [where, skip_hidden])
    return found


_LEAST_CONTRAST = """([where, skipHidden]) => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const found = channels(getComputedStyle(element).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const element of document.querySelectorAll(where)) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!words || element.closest("svg") || (skipHidden && !element.checkVisibility())) continue;
    const one = light(channels(getComputedStyle(element).color)), other = light(ground(element));
    least = Math.min(least, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
  }
  return least;
}"""
