"""The templates as files: lines that can be read, and a style page that leaves no shared component out."""

import re
from collections import Counter
from pathlib import Path

from activity.pages.showcase import PARTS
from activity.templatetags import paceline

PROJECT = Path(__file__).resolve().parents[2]
TEMPLATES = PROJECT / "templates"
STYLE = TEMPLATES / "activity" / "style"
LONGEST_LINE = 120
SEVERAL = 3  # templates: a class that so many use is a component
# The navigation and the live pills stand in the frame of every page, and need rows of the database.
IN_THE_FRAME = {"sections", "run_pill", "account_pill"}
# Hooks of scripts, the frame of the wizard, and the card of the error pages, which stands alone on its page.
NO_COMPONENTS = {"implicit", "script-off", "wizard", "bare-card", "bare-note", "notice-card"}
CLASSES = re.compile(r'class="([^"]*)"')
TAG = re.compile(r"\{[%{].*?[%}]\}")
NAME = re.compile(r"[a-z][a-z0-9-]*")


def classes_in(template: Path) -> set[str]:
    written = " ".join(TAG.sub(" ", found) for found in CLASSES.findall(template.read_text()))
    return set(NAME.findall(written))


def classes_of_css() -> set[str]:
    rules = "".join(css.read_text() for css in (PROJECT / "static" / "css").glob("*.css"))
    return set(re.findall(r"\.([a-z][a-z0-9-]*)", rules))


def test_lines_of_templates_can_be_read_without_scrolling() -> None:
    long = [
        f"{template.relative_to(PROJECT)}:{number}"
        for template in TEMPLATES.rglob("*.html")
        for number, line in enumerate(template.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []


def test_each_part_of_the_style_page_has_its_template() -> None:
    assert {f"_{name}.html" for name, _ in PARTS} == {template.name for template in STYLE.glob("*.html")}


def test_the_style_page_shows_every_tag() -> None:
    shown = "".join(template.read_text() for template in STYLE.glob("*.html"))
    missing = {name for name in paceline.register.tags if f"{{% {name} " not in shown}
    assert missing == IN_THE_FRAME


def test_the_style_page_shows_every_class_that_several_pages_share() -> None:
    pages = [page for page in TEMPLATES.rglob("*.html") if not {"admin", "style"} & set(page.parts)]
    used = Counter(name for page in pages for name in classes_in(page))
    shown = set[str]().union(*(classes_in(page) for page in STYLE.glob("*.html")))
    built_in = set[str]().union(*(classes_in(page) for page in (TEMPLATES / "components").glob("*.html")))
    frame = set[str]().union(*(classes_in(TEMPLATES / name) for name in ("base.html", "bare.html")))
    guide = classes_in(TEMPLATES / "activity" / "styleguide.html")
    components = {name for name, pages_with in used.items() if pages_with >= SEVERAL} & classes_of_css()
    assert components - shown - built_in - frame - guide == NO_COMPONENTS
