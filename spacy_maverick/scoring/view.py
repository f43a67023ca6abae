"""Clusters as HTML: pages that need no network and no library, with everything escaped."""

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from spacy.tokens import Doc

from ..doc.clusters import cluster_keys, find_prefix
from .comparison import ERRORS, Error, Mark

#: What stands beside the number of a cluster, so that errors are not told by colour alone.
SIGNS: dict[Error, str] = {"missed": "−", "spurious": "+", "merged": "→", "split": "÷"}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2em auto; max-width: 100em;
  padding: 0 1em; }
.text { white-space: pre-wrap; line-height: 2.3; overflow-wrap: anywhere; }
.mention { background: hsl(var(--hue) 75% 90%); border-bottom: 2px solid hsl(var(--hue) 65% 42%);
  padding: 1px 3px calc(var(--height) * 4px - 3px); border-radius: 3px;
  box-decoration-break: clone; -webkit-box-decoration-break: clone; }
.mention > sup { color: hsl(var(--hue) 75% 28%); font-size: 11px; font-weight: bold;
  line-height: 0; margin-right: 1px; }
.same { background: hsl(var(--hue) 90% 72%); }
.missed, .spurious, .merged, .split { outline: 2px dashed #c02020; outline-offset: -1px; }
.merged, .split { outline-style: solid; outline-color: #7a20c0; }
.missed > sup, .spurious > sup { color: #c02020; }
.merged > sup, .split > sup { color: #7a20c0; }
.clusters li { margin: .2em 0; line-height: 1.8; }
table { border-collapse: collapse; }
th, td { padding: .15em .7em; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #999; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.sides { table-layout: fixed; width: 100%; }
.sides td { border-bottom: 1px solid #eee; }
.sides td + td { border-left: 1px solid #ccc; }
summary { cursor: pointer; font-weight: bold; margin: .8em 0 .3em; }
"""

# Pointing at a mention shows the others of its cluster.
SCRIPT = """
function show(event) {
  for (const other of document.querySelectorAll(".same")) other.classList.remove("same");
  const mention = event.target.closest(".mention");
  if (!mention) return;
  const number = mention.dataset.cluster;
  for (const other of mention.closest(".document").querySelectorAll(".mention"))
    if (other.dataset.cluster === number) other.classList.add("same");
}
document.addEventListener("mouseover", show);
"""


def render_page(title: str, body: str) -> str:
    """Make a page that stands by itself.

    title (str): The title, as text.
    body (str): What the page shows, as HTML.
    RETURNS (str): The page.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def render_clusters(doc: Doc, *, prefix: str | None = None) -> str:
    """Show the clusters of a document in its text, and a list of them.

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (str): A part of a page, for `render_page`.
    """
    keys = cluster_keys(doc, find_prefix(doc) if prefix is None else prefix)
    marks = []
    items = []
    for number, key in enumerate(keys, start=1):
        group = doc.spans[key]
        marks += [Mark(span.start_char, span.end_char, number) for span in group]
        mentions = [render_text(s.text, [Mark(0, len(s.text), number)]) for s in group]
        items.append(f"<li>{' '.join(mentions)}</li>")
    text = render_text(doc.text, marks)
    clusters = f'<ol class="clusters">{"".join(items)}</ol>' if items else "<p>No clusters.</p>"
    return f'<div class="document"><div class="text">{text}</div>\n{clusters}</div>'


def render_text(text: str, marks: Sequence[Mark], start: int = 0, end: int | None = None) -> str:
    """Mark mentions in a text, or in a part of it. Nested mentions are nested elements; of two that
    cross, one is cut in two.

    text (str): The text.
    marks (Sequence[Mark]): The mentions, by characters of the text.
    start (int): Where the part begins.
    end (Optional[int]): Where it ends, exclusive; by default the end of the text.
    RETURNS (str): HTML.
    """
    end = len(text) if end is None else end
    inside = [mark for mark in marks if mark.start < end and start < mark.end]
    inside.sort(key=lambda mark: (mark.start, -mark.end))
    heights = _heights(inside)
    starting = defaultdict(list)
    borders = {start, end}
    for mark in inside:
        starting[max(mark.start, start)].append(mark)
        borders.update((max(mark.start, start), min(mark.end, end)))
    parts: list[str] = []
    opened: list[Mark] = []
    for border, following in pairwise(sorted(borders)):
        lasting = [mark for mark in opened if mark.end > border]
        # Elements can only be closed from the inside out, so those that last may have to be, too.
        kept = next((i for i, mark in enumerate(opened) if mark.end <= border), len(opened))
        parts.append("</span>" * (len(opened) - kept))
        opening = [*lasting[kept:], *starting[border]]
        parts += [_open(mark, heights[mark]) for mark in opening]
        opened = [*lasting[:kept], *opening]
        parts.append(escape(text[border:following]))
    parts.append("</span>" * len(opened))
    return "".join(parts)


def _open(mark: Mark, height: int) -> str:
    hue = mark.cluster * 137.508 % 360  # the golden angle: no two near numbers look alike
    title = f"cluster {mark.cluster}"
    sign = ""
    classes = "mention"
    if mark.error is not None:
        title += f", {mark.error}: {ERRORS[mark.error]}"
        sign = SIGNS[mark.error]
        classes += f" {mark.error}"
    return (
        f'<span class="{classes}" data-cluster="{mark.cluster}" title="{escape(title)}" '
        f'style="--hue:{hue:.0f};--height:{height}"><sup>{mark.cluster}{sign}</sup>'
    )


def _heights(marks: Sequence[Mark]) -> dict[Mark, int]:
    """How many levels of mentions each one holds, itself included, so that lines below nested
    mentions do not fall together."""
    heights = dict.fromkeys(marks, 1)
    around: list[Mark] = []
    for mark in marks:
        around = [other for other in around if other.end > mark.start]
        around.append(mark)
        for height, other in enumerate(reversed(around), start=1):
            heights[other] = max(heights[other], height)
    return heights
