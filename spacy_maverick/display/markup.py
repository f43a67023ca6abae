"""Mentions in a text as nested elements of HTML, with everything escaped."""

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from .colours import colour_of, line_of
from .marks import ERRORS, SIGNS, Mark

#: Lines below nested mentions stand apart up to this depth; deeper ones fall together.
DEEPEST = 6


def render_text(
    text: str,
    marks: Sequence[Mark],
    start: int = 0,
    end: int | None = None,
    *,
    focusable: bool = False,
) -> str:
    """Mark mentions in a text, or in a part of it. Nested mentions are nested elements; of two that
    cross, one is cut in two.

    text (str): The text.
    marks (Sequence[Mark]): The mentions, by characters of the text.
    start (int): Where the part begins.
    end (Optional[int]): Where it ends, exclusive; by default the end of the text.
    focusable (bool): Whether the Tab key goes from mention to mention.
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
        parts += [_open(mark, heights[mark], mark.start == border, focusable) for mark in opening]
        opened = [*lasting[:kept], *opening]
        parts.append(escape(text[border:following]))
    parts.append("</span>" * len(opened))
    return "".join(parts)


def _open(mark: Mark, height: int, first: bool, focusable: bool) -> str:
    """Open the element of a mention, or of a later part of one that is cut."""
    number = mark.cluster
    classes = ["mention", f"c{colour_of(number)}", f"l{line_of(number)}"]
    classes.append(f"h{min(height, DEEPEST)}")
    attributes = f' data-cluster="{number}" data-span="{mark.start}-{mark.end}"'
    label = str(number)
    if mark.error is not None:
        classes.append(mark.error)
        label += SIGNS[mark.error]
        title = f"cluster {number}, {mark.error}: {ERRORS[mark.error]}"
        attributes += f' title="{escape(title)}"'
    if mark.score is not None:
        attributes += f' data-score="{mark.score:.3f}"'
    if first:
        # The number is drawn by the style sheet, so that copied text is the text.
        attributes += f' data-label="{label}"'
        attributes += ' tabindex="0"' if focusable else ""
    else:
        classes.append("later")
    return f'<span class="{" ".join(classes)}"{attributes}>'


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
