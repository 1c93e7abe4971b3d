"""Checks of a page: labels, headings, contrast, focus, narrow windows and large text."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

MIN_CONTRAST = 4.5
"""The ratio of WCAG 2.2, 1.4.3, for text of any size."""

LABELS = """
() => [...document.querySelectorAll("input, textarea, select, button, a, summary, progress")]
  .filter((each) => each.type !== "hidden" && each.checkVisibility())
  .filter((each) => {
    const labels = [...(each.labels ?? [])].map((label) => label.textContent).join("");
    const named = (each.getAttribute("aria-labelledby") ?? "").split(" ")
      .map((id) => document.getElementById(id)?.textContent ?? "").join("");
    return !(labels + named + (each.ariaLabel ?? "") + each.textContent).trim();
  })
  .map((each) => each.outerHTML)
"""
"""What has no name that a screen reader could read."""

GROUPS = """
() => [...document.querySelectorAll("input[type=radio], input[type=checkbox][data-toggle]")]
  .filter((each) => !each.closest("fieldset")?.querySelector("legend")?.textContent.trim())
  .map((each) => each.outerHTML)
"""
"""Choices without a question."""

HEADINGS = """
() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((each) => each.checkVisibility())
  .map((each) => Number(each.tagName[1]))
"""

CONTRASTS = """
() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], under) =>
    [r, g, b].map((value, k) => a * value + (1 - a) * under[k]);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const chain = (each) => (each ? [...chain(each.parentElement), each] : []);
  const found = [];
  for (const each of document.querySelectorAll("body *")) {
    const text = [...each.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => node.textContent).join("").trim();
    const value = each.matches("input:not([type=radio], [type=checkbox], [type=hidden]), textarea");
    if (!(text || value) || !each.checkVisibility() || each.closest(".hidden, .skip, :disabled"))
      continue;
    let ground = [255, 255, 255];
    let opacity = 1;
    for (const ancestor of chain(each)) {
      const style = getComputedStyle(ancestor);
      ground = over(parse(style.backgroundColor), ground);
      opacity *= Number(style.opacity);
    }
    const [r, g, b, a] = parse(getComputedStyle(each).color);
    const colour = over([r, g, b, a * opacity], ground);
    const [dark, light] = [luminance(colour), luminance(ground)].sort((x, y) => x - y);
    found.push([(light + 0.05) / (dark + 0.05), `${each.className || each.tagName}: ${text}`]);
  }
  return found;
}
"""

CUT_OFF = """
() => [...document.querySelectorAll("body *")]
  .filter((each) => each.checkVisibility() && !each.closest(".hidden, .skip, .wide, thead"))
  .filter((each) => {
    const box = each.getBoundingClientRect();
    return box.width && (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
  })
  .map((each) => `${each.tagName} ${each.className}: ${each.textContent.trim().slice(0, 40)}`)
"""
"""What reaches over the edge of the window."""

FOCUS = """
() => {
  const each = document.activeElement;
  if (!each || each === document.body) return null;
  const shown = [each, each.closest("label")].filter(Boolean).some((which) => {
    const style = getComputedStyle(which);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  });
  const box = (each.closest("label") ?? each).getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [shown && inside, each.outerHTML.slice(0, 120)];
}
"""
"""Whether one sees what has the focus."""


def audit(page: Page) -> None:
    """Check the page that is shown in light and dark, narrow, and with large text."""
    assert page.evaluate(LABELS) == []
    assert page.evaluate(GROUPS) == []
    assert page.title().strip()
    assert page.locator("html").get_attribute("lang")
    check_headings(page.evaluate(HEADINGS))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found: list[tuple[float, str]] = page.evaluate(CONTRASTS)
        assert len(found) > 2
        faint = [(round(ratio, 2), text) for ratio, text in found if ratio < MIN_CONTRAST]
        assert not faint, (scheme, faint)
    page.emulate_media(color_scheme="light")
    check_width(page, 320, "100%")
    check_width(page, 1280, "200%")
    check_width(page, 320, "200%")
    page.set_viewport_size({"width": 1280, "height": 844})


def check_headings(levels: list[int]) -> None:
    """The first heading is the only one of the first level, and no level is left out."""
    assert levels[:1] == [1], levels
    assert levels.count(1) == 1, levels
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def check_width(page: Page, width: int, size: str) -> None:
    """In a window of this width, with text of this size, nothing reaches over the edge."""
    page.set_viewport_size({"width": width, "height": 844})
    root = page.locator("html")
    root.evaluate("(root, size) => { root.style.fontSize = size; }", size)
    scrolled = page.evaluate("document.documentElement.scrollWidth")
    cut_off = page.evaluate(CUT_OFF)
    root.evaluate("root => { root.style.fontSize = ''; }")
    assert scrolled <= width, (width, size, scrolled, cut_off)
    assert cut_off == [], (width, size)


def check_focus(page: Page, most: int = 60) -> int:
    """Go once through the page with the tabulator key; return how many stops there were."""
    stops: list[str] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        found: Any = page.evaluate(FOCUS)
        if found is None:  # behind the last one comes the window, then the first one
            continue
        visible, what = found
        if what in stops[:1]:
            break
        assert visible, what
        stops.append(what)
    return len(stops)
