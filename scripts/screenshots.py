"""Make the pictures of `view` in docs/images, with a headless Chromium and its driver.

    pip install selenium && python scripts/screenshots.py [--folder docs/images] [--long]

The clusters are set by hand, so that the pictures show what is right and stay the same whatever
model the package has. `--long` also takes a picture of a document of 50,000 words.
"""

import argparse
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import spacy
from selenium import webdriver
from selenium.webdriver.common.by import By
from spacy.tokens import Doc

import spacy_maverick

NESTED = """
[1 Professor Ingrid Dahl ] has been studying [2 volcanoes ] for thirty years .
Last spring [1 she ] signed a contract with [3 Terravox , a small company from Oslo ] .
[3 It ] builds [4 sensors that listen to [2 them ] ] , and [5 [3 its ] engineers ] wanted
[6 [1 her ] advice ] .
[7 [8 Two students of [1 the professor ] ] and [9 [8 their ] guide ] ] travelled to [10 Iceland ] .
[7 They ] carried [4 the instruments ] up [11 the highest mountain of [10 the island ] ] , although
the wind on [11 it ] nearly blew [7 them ] away .
[3 Terravox ] praised [1 Dahl ] in [3 its ] yearly report , and [1 she ] told [8 the students ] that
[6 the advice that [5 they ] had followed ] was [8 theirs ] .
"""
DIALOGUE = """
@Nora [1 Tom ] , [2 I ] found [3 [1 your ] keys ] in the kitchen .
@Tom Thank [2 you ] ! [1 I ] was looking for [3 them ] everywhere . Did [4 Iris ] tell [2 you ] ?
@Nora [4 She ] did . [4 She ] saw [3 them ] this morning .
@Iris [4 I ] did not want to wake [1 you ] , [1 Tom ] . [1 You ] looked tired .
@Tom [4 You ] are right , [1 I ] was . What would [1 I ] do without [4 [1 my ] sister ] ?
"""
#: Options that keep Chromium to itself, also in a container.
OPTIONS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync hide-scrollbars force-device-scale-factor=1"
)
NO_SPACE_BEFORE = set(".,!?")


def make_doc(text: str) -> Doc:
    """Read a text in which brackets with a number stand around mentions, and "@Name" before what
    somebody says."""
    words: list[str] = []
    speakers: list[str | None] = []
    opened: list[tuple[int, int]] = []
    clusters: dict[int, list[tuple[int, int]]] = {}
    speaker = None
    for item in text.split():
        if item.startswith("@"):
            speaker = item[1:]
        elif item.startswith("["):
            opened.append((int(item[1:]), len(words)))
        elif item == "]":
            number, start = opened.pop()
            clusters.setdefault(number, []).append((start, len(words)))
        else:
            words.append(item)
            speakers.append(speaker)
    spaces = [word not in NO_SPACE_BEFORE for word in [*words[1:], "."]]
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=spaces)
    for token, name in zip(doc, speakers, strict=True):
        token._.speaker = name
    chains = sorted(sorted(chain) for chain in clusters.values())
    # Probabilities of the height that a good model gives, all different.
    scores = [[0.999 - (7 * (a + b) % 13) / 60 for a, b in chain] for chain in chains]
    spacy_maverick.set_clusters(doc, chains, scores=scores)
    return doc


def make_long_doc(n_words: int = 50_000) -> Doc:
    """The nested text again and again, a paragraph each, in one document."""
    part = make_doc(NESTED)
    words: list[str] = []
    spaces: list[bool] = []
    clusters: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for turn in range(n_words // len(part)):
        # People and companies come back in the next paragraphs; other things are new each time.
        for number, chain in enumerate(spacy_maverick.get_clusters(part)):
            key = (number, 0 if number < 3 else turn)
            clusters.setdefault(key, []).extend((a + len(words), b + len(words)) for a, b in chain)
        words += [token.text for token in part] + ["\n\n"]
        spaces += [bool(token.whitespace_) for token in part] + [False]
    doc = Doc(part.vocab, words=words, spaces=spaces)
    chains = sorted(clusters.values())
    spacy_maverick.set_clusters(doc, chains, scores=[[0.97] * len(chain) for chain in chains])
    return doc


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


def take(path: Path, doc: Doc, title: str, point_at: str, *, dark: bool = False, **size) -> None:
    """Take a picture of a document's page with the pointer on the first mention that is
    `point_at`."""
    with tempfile.TemporaryDirectory() as folder, open_browser(dark=dark, **size) as browser:
        page = Path(folder) / "page.html"
        spacy_maverick.view(doc, title=title).save(page)
        browser.get(page.as_uri())
        mentions = browser.find_elements(By.CSS_SELECTOR, ".mention")
        chosen = next(m for m in mentions if m.get_property("textContent") == point_at)
        webdriver.ActionChains(browser).move_to_element(chosen).perform()
        browser.save_screenshot(str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    parser.add_argument("--long", action="store_true")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    take(folder / "view.png", make_doc(NESTED), "A paragraph", "Terravox", height=560)
    dialogue = make_doc(DIALOGUE)
    take(folder / "view-dialogue.png", dialogue, "A dialogue", "you", dark=True, height=450)
    if arguments.long:
        take(folder / "view-long.png", make_long_doc(), "A long document", "its", height=800)


if __name__ == "__main__":
    main()
