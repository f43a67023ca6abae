"""Make the pictures of `view` in docs/images, with a headless Chromium and its driver.

    pip install selenium && python scripts/screenshots.py [--folder docs/images] [--long TEXT.txt]

They show what the model in the package finds, right or wrong. `--long` also takes a picture of a
text of one's own.
"""

import argparse
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from spacy.tokens import Doc

import spacy_maverick

NESTED = """\
Professor Ingrid Dahl has been studying volcanoes for thirty years. Last spring she signed a \
contract with Terravox, a small company from Oslo. It builds sensors that listen to them, and its \
engineers wanted her advice. Two students of the professor and their guide travelled to Iceland. \
They carried the instruments up the highest mountain of the island, although the wind on it nearly \
blew them away. Terravox praised Dahl in its yearly report, and she told the students that the \
advice that they had followed was theirs."""
#: Options that keep Chromium to itself, also in a container.
OPTIONS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync hide-scrollbars force-device-scale-factor=1"
)


@contextmanager
def open_browser(width: int = 1120, height: int = 620, *, dark: bool = False):
    """A headless Chromium with nothing of anybody's in it."""
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        for option in [*OPTIONS.split(), f"window-size={width},{height}"]:
            options.add_argument(f"--{option}")
        options.add_argument(f"--user-data-dir={profile}")
        # Both are named, else selenium asks the network for them.
        options.binary_location = shutil.which("chromium") or ""
        driver = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        browser = webdriver.Chrome(options=options, service=driver)
        try:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            yield browser
        finally:
            browser.quit()


def take(path: Path, doc: Doc, title: str, *, dark: bool = False, **size: int) -> None:
    """Take a picture of a document's page with the pointer on what is mentioned most."""
    longest = max(spacy_maverick.get_clusters(doc), key=len)
    start, end = longest[0]
    with tempfile.TemporaryDirectory() as folder, open_browser(dark=dark, **size) as browser:
        page = Path(folder) / "page.html"
        spacy_maverick.view(doc, title=title).save(page)
        browser.get(page.as_uri())
        mentions = browser.find_elements(By.CSS_SELECTOR, ".mention")
        chosen = next(m for m in mentions if m.get_property("textContent") == doc[start:end].text)
        webdriver.ActionChains(browser).move_to_element(chosen).perform()
        browser.save_screenshot(str(path))


def main() -> None:
    from demo import DIALOGUE  # beside this script, which tests load by its path

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    parser.add_argument("--long", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    nlp = spacy_maverick.load()
    take(folder / "view.png", nlp(NESTED), "A paragraph", height=560)
    spoken = spacy_maverick.dialogue(nlp, DIALOGUE)
    take(folder / "view-dialogue.png", spoken, "A dialogue", dark=True, height=450)
    if arguments.long:
        text = arguments.long.read_text(encoding="utf8")
        take(folder / "view-long.png", nlp(text), "A long document", height=800)


if __name__ == "__main__":
    main()
