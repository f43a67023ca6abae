"""The page in a headless Chromium: what people do with it. Skipped where there is none."""

import importlib.util
import json
import shutil
import sys
import time
from pathlib import Path

import pytest
import spacy
from shown_documents import DIALOGUE, NESTED, SPEAKERS, make_doc, make_long_doc
from test_server import running

from spacy_maverick.display import view
from spacy_maverick.display.page import render_clusters, render_editor, render_page
from spacy_maverick.doc.clusters import set_clusters
from spacy_maverick.doc.dialogue import dialogue
from spacy_maverick.doc.turns import read_turns

SCRIPT = Path(__file__).parents[2] / "scripts" / "screenshots.py"
missing = not (shutil.which("chromium") and shutil.which("chromedriver"))
#: How far a mention is from the upper and the lower edge of the window.
MARGINS = "const b = arguments[0].getBoundingClientRect(); return [b.top, innerHeight - b.bottom]"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing, reason="needs chromium and chromedriver"),
]


@pytest.fixture(scope="module")
def screenshots():
    pytest.importorskip("selenium")
    spec = importlib.util.spec_from_file_location("screenshots", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def browser(screenshots):
    with screenshots.open_browser(width=1120, height=700) as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    def open_page(doc):
        view(doc).save(tmp_path / "page.html")
        browser.get((tmp_path / "page.html").as_uri())
        return browser

    yield open_page
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert errors == []


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, selector)


def mention(browser, text, number=0):
    found = [e for e in find(browser, ".mention") if e.get_property("textContent") == text]
    return found[number]


def press(browser, *keys):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def point_at(browser, element):
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(element).perform()


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_pointing_lights_up_a_chain_and_draws_its_links(show):
    browser = show(make_doc(NESTED))
    point_at(browser, mention(browser, "she"))
    chain = ["Professor Ingrid Dahl", "she", "her", "the professor", "Dahl", "she"]
    assert texts(browser, ".mention.same") == chain
    assert texts(browser, ".entity.same .name") == ["Professor Ingrid Dahl"]
    assert len(find(browser, ".chain path")) == 5
    labels = texts(browser, ".chain text")
    assert len(labels) == 5 and all(label.endswith(" %") for label in labels)
    assert "mention 2 of 6" in texts(browser, ".status")[0]
    # The inner of two mentions is the one that is pointed at.
    point_at(browser, mention(browser, "its"))
    assert "Terravox" in texts(browser, ".mention.same")
    point_at(browser, find(browser, "h1")[0])
    assert find(browser, ".mention.same") == [] and find(browser, ".chain") == []


def test_nested_mentions_have_lines_at_different_heights(show):
    browser = show(make_doc(NESTED))
    bottom = "return arguments[0].getClientRects()[0].bottom"
    outer, inner = mention(browser, "its engineers"), mention(browser, "its")
    assert browser.execute_script(bottom, outer) > browser.execute_script(bottom, inner) + 2


def test_the_keyboard_goes_from_mention_to_mention_and_along_a_chain(show):
    from selenium.webdriver import Keys

    browser = show(make_doc(NESTED))
    focused = lambda: browser.switch_to.active_element.get_property("textContent")  # noqa: E731
    browser.execute_script("arguments[0].focus()", mention(browser, "Professor Ingrid Dahl"))
    assert len(find(browser, ".chain path")) == 5
    press(browser, Keys.TAB)
    assert focused() == "volcanoes"
    press(browser, Keys.TAB, Keys.ARROW_RIGHT)
    assert focused() == "her"
    press(browser, Keys.END, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert focused() == "Dahl"
    press(browser, Keys.HOME)
    assert focused() == "Professor Ingrid Dahl"
    press(browser, Keys.ESCAPE)
    assert find(browser, ".mention.same") == []
    # The list is one stop, and arrows move in it.
    find(browser, ".filter")[0].click()
    press(browser, Keys.TAB, Keys.ARROW_DOWN)
    assert "Terravox" in focused()
    press(browser, Keys.TAB)
    assert focused() == "Professor Ingrid Dahl"


def test_the_list_jumps_to_mentions_and_can_be_searched(show):
    browser = show(make_long_doc(3000))
    find(browser, ".filter")[0].send_keys("ICELAND")
    shown = [e for e in find(browser, ".entity") if e.is_displayed()]
    assert len(shown) == 3000 // len(make_doc(NESTED))
    for place in ("1 of 2", "2 of 2"):
        shown[-1].click()
        wait_for(lambda place=place: place in texts(browser, ".status")[0])
        (here,) = find(browser, ".mention.here")
        wait_for(lambda here=here: min(browser.execute_script(MARGINS, here)) > 0)
    assert browser.execute_script("return scrollY") > 1000


def test_dialogues_show_who_speaks(show):
    browser = show(make_doc(DIALOGUE, SPEAKERS))
    assert texts(browser, ".speaker") == ["Nora", "Tom", "Nora", "Iris", "Tom"]
    point_at(browser, mention(browser, "I"))
    assert "said by Nora" in texts(browser, ".status")[0]
    assert "Nora" in texts(browser, ".entity.same")[0]


def test_copied_text_is_the_text(show):
    doc = make_doc(NESTED)
    browser = show(doc)
    script = """
        getSelection().selectAllChildren(document.querySelector(".text"));
        return getSelection().toString();
    """
    assert browser.execute_script(script).strip() == doc.text.strip()


def test_dark_mode(screenshots, tmp_path):
    view(make_doc(DIALOGUE, SPEAKERS)).save(tmp_path / "page.html")
    colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    with screenshots.open_browser(dark=True) as browser:
        browser.get((tmp_path / "page.html").as_uri())
        assert max(browser.execute_script(colour)) < 60


def test_a_document_of_50000_words_does_not_stutter(show):
    begin = time.monotonic()
    browser = show(make_long_doc(50_000))
    loaded = time.monotonic() - begin
    measure = """
        const done = arguments[arguments.length - 1];
        const all = [...document.querySelectorAll(".entity")].slice(0, 2);
        const times = [];
        let step = 0;
        function next() {
          const begin = performance.now();
          all[step % 2].dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
          scrollBy(0, 700);
          document.querySelector(".text").getBoundingClientRect();
          times.push(performance.now() - begin);
          if (++step < 40) requestAnimationFrame(next); else done(times);
        }
        next();
    """
    times = sorted(browser.execute_async_script(measure))
    print(json.dumps({"load": loaded, "median": times[20], "worst": times[-1]}), file=sys.stderr)
    assert times[20] < 200  # milliseconds, on a busy machine; chains of 3,000 mentions in turns
    assert len(find(browser, ".chain path")) < 200
    assert loaded < 30


def test_typing_shows_clusters_at_once(browser):
    nlp = spacy.blank("en")

    def same_words(text, speakers):
        doc = dialogue(nlp, read_turns(text)) if speakers else nlp(text)
        places = {}
        for token in doc:
            places.setdefault(token.text, []).append((token.i, token.i + 1))
        set_clusters(doc, [found for found in places.values() if len(found) > 1])
        return render_clusters(doc)

    with running(same_words) as server:
        server.page = render_page("Live", render_editor("Ada"), connect="'self'")
        browser.get(server.url)
        typed = find(browser, "#typed")[0]
        assert typed.get_property("value") == "Ada"
        typed.send_keys(" saw Tom. Tom saw <b>Ada</b>")
        wait_for(lambda: "Tom" in texts(browser, "#result .mention"))
        wait_for(lambda: "<b>" in texts(browser, "#result .text")[0])
        assert find(browser, "#result .text b") == []
        point_at(browser, mention(browser, "Tom"))
        assert texts(browser, ".mention.same") == ["Tom", "Tom"]
        find(browser, "#speakers")[0].click()
        wait_for(lambda: "Name: text" in texts(browser, "#progress")[0])
        typed.clear()
        typed.send_keys("Ada: I am I")
        wait_for(lambda: texts(browser, ".speaker") == ["Ada"])
    typed.send_keys(" again")
    wait_for(lambda: "still running" in texts(browser, "#progress")[0])
    browser.get_log("browser")
