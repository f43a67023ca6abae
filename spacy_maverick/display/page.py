"""Pages of clusters that stand by themselves: no network, no library, everything escaped."""

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from spacy.tokens import Doc

from .colours import colour_of
from .content import Block, Content, get_content, one_line
from .marks import Mark
from .markup import render_text

FOLDER = Path(__file__).parent
#: What a page may do: use its own style and script, and ask the server that it came from, if any.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "connect-src {connect}; base-uri 'none'; form-action 'none'"
)
NO_CLUSTERS = '<p class="none">No clusters: no two mentions here mean the same.</p>'
#: Where a notebook shows no more than this many pixels at once, it scrolls.
NOTEBOOK_HEIGHT = 640


def render_page(title: str, body: str, *, connect: str = "'none'") -> str:
    """Make a page that stands by itself.

    title (str): The title, as text.
    body (str): What the page shows, as HTML.
    connect (str): Whom its script may ask, as a source of a content security policy.
    RETURNS (str): The page.
    """
    return Template(_file("page.html")).substitute(
        title=escape(title),
        policy=POLICY.format(connect=connect),
        style=_file("page.css"),
        script=_file("page.js"),
        body=body,
    )


def render_clusters(doc: Doc, *, prefix: str | None = None) -> str:
    """Show the clusters of a document in its text, and a list of its entities.

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (str): A part of a page, for `render_page`.
    """
    content = get_content(doc, prefix=prefix)
    blocks = [
        _render_block(content.text, block, marks) for block, marks in _marks_by_block(content)
    ]
    side = _render_side(content) if content.entities else NO_CLUSTERS
    return (
        f'<div class="document links">\n<aside class="side">{side}</aside>\n'
        f'<div class="text" lang="{escape(doc.lang_)}">{"".join(blocks)}</div>\n</div>'
    )


def render_editor(text: str = "", *, speakers: bool = False, result: str = "") -> str:
    """Make the part of a page in which people type, for the page of a server.

    text (str): What stands there at first.
    speakers (bool): Whether its lines are of the form "Name: text".
    result (str): What `render_clusters` made of it, or "".
    RETURNS (str): A part of a page.
    """
    return Template(_file("editor.html")).substitute(
        text=escape("\n" + text), checked=" checked" if speakers else "", result=result
    )


class View:
    """The clusters of a document as a page, which notebooks show.

    page (str): The page, as HTML.
    """

    def __init__(self, page: str, height: int = NOTEBOOK_HEIGHT) -> None:
        self.page = page
        self.height = height

    def save(self, path: str | Path) -> None:
        """Write the page to a file that any browser opens.

        path (Union[str, Path]): The file.
        """
        Path(path).write_text(self.page, encoding="utf8")

    def _repr_html_(self) -> str:
        """RETURNS (str): The page in a frame of its own: styles and scripts of a notebook and
        those of the page leave each other alone."""
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.page)}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def view(doc: Doc, *, title: str = "Coreference", prefix: str | None = None) -> View:
    """Show the clusters of a document: in a notebook as the last line of a cell, elsewhere with
    `view(doc).save("page.html")`.

    doc (Doc): The document.
    title (str): The title of the page.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (View): The page.
    """
    page = render_page(title, render_clusters(doc, prefix=prefix))
    # A line has about 90 characters and 40 pixels; the title and the list need some more.
    height = 260 + 40 * (len(doc.text) // 90 + doc.text.count("\n"))
    return View(page, min(height, NOTEBOOK_HEIGHT))


@cache
def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf8")


def _marks_by_block(content: Content) -> Iterator[tuple[Block, list[Mark]]]:
    """The mentions of each block, in one pass over both. One that goes on into the next block
    stands in both."""
    marks = content.marks
    position = 0
    open_marks: list[Mark] = []
    for block in content.blocks:
        open_marks = [mark for mark in open_marks if mark.end > block.start]
        while position < len(marks) and marks[position].start < block.end:
            open_marks.append(marks[position])
            position += 1
        yield block, open_marks


def _render_block(text: str, block: Block, marks: Sequence[Mark]) -> str:
    shown = render_text(text, marks, block.start, block.end, focusable=True)
    if block.speaker is None:
        return f'<div class="block">{shown}</div>'
    speaker = escape(str(block.speaker))
    label = f'<span class="speaker">{speaker}</span>' if block.opens else ""
    return f'<div class="block turn" data-speaker="{speaker}">{label}{shown}</div>'


def _render_side(content: Content) -> str:
    """The list of entities, those with most mentions first."""
    n_mentions = sum(len(entity.mentions) for entity in content.entities)
    items = []
    for entity in sorted(content.entities, key=lambda entity: -len(entity.mentions)):
        items.append(
            f'<li><button type="button" tabindex="-1" class="entity c{colour_of(entity.number)}" '
            f'data-cluster="{entity.number}"><span class="number">{entity.number}</span>'
            f'<span class="name">{escape(one_line(entity.name))}</span>'
            f'<span class="count">{len(entity.mentions):,}</span></button></li>'
        )
    return (
        f'<p class="summary">{_count(len(content.entities), "entity", "entities")}, '
        f"{_count(n_mentions, 'mention', 'mentions')}, "
        f"{_count(content.n_words, 'word', 'words')}</p>\n"
        f'<p class="status" aria-live="polite"></p>\n'
        f'<input type="search" class="filter" placeholder="Find an entity" '
        f'aria-label="Find an entity"/>\n<ol class="entities">{"".join(items)}</ol>\n'
        f'<p class="keys"><kbd>Tab</kbd> next mention, <kbd>←</kbd> <kbd>→</kbd> along its chain, '
        f"<kbd>Esc</kbd> done</p>"
    )


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
