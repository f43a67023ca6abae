"""Clusters in a terminal: the text with numbered brackets around mentions, and a list."""

import re
from collections.abc import Iterator, Sequence

from .colours import COLOURS, colour_of
from .content import Content, Entity, one_line
from .marks import Mark

RESET, BOLD, DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
#: What a text could use to take over a terminal.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: Longer mentions are cut in the list.
LONGEST_MENTION = 80


def render_terminal(content: Content) -> str:
    """Show a document in colour.

    content (Content): What is shown of it.
    RETURNS (str): Its text, each mention in brackets with the number of its cluster, and the list
        of its clusters.
    """
    marks = content.marks
    parts = []
    for block in content.blocks:
        if block.opens:
            start = "\n" if block.start else ""
            parts.append(f"{start}{BOLD}{_safe(str(block.speaker))}:{RESET} ")
        inside = [mark for mark in marks if block.start <= mark.start < block.end]
        parts += _bracket(content.text, inside, block.start, block.end)
    text = "".join(parts).rstrip()
    return f"{text}\n\n{render_list(content, colour=True)}" if content.entities else text


def render_list(content: Content, *, colour: bool = False) -> str:
    """List the clusters of a document, one a line: the number, a tab, and the mentions.

    content (Content): What is shown of the document.
    colour (bool): Whether to use colours.
    RETURNS (str): The lines.
    """
    lines = []
    for entity in content.entities:
        mentions = " | ".join(_mentions(entity, colour))
        if colour:
            lines.append(f"{_colour(entity.number)}{BOLD}{entity.number:>3}{RESET}  {mentions}")
        else:
            lines.append(f"{entity.number}\t{mentions}")
    return "\n".join(lines)


def _mentions(entity: Entity, colour: bool) -> Iterator[str]:
    for span in entity.mentions:
        text = _safe(one_line(span.text, LONGEST_MENTION))
        if span[0]._.speaker:
            said = f" ({_safe(str(span[0]._.speaker))})"
            text += f"{DIM}{said}{RESET}" if colour else said
        yield text


def _bracket(text: str, marks: Sequence[Mark], start: int, end: int) -> Iterator[str]:
    """Write a part of a text, each mention in the colour of its cluster; of nested ones the
    innermost colour counts. What ends after the part ends with it."""
    opened: list[Mark] = []
    position = start
    borders = {b for mark in marks for b in (mark.start, min(mark.end, end))}
    for border in [*sorted(borders), end]:
        yield _safe(text[position:border])
        position = border
        for mark in [mark for mark in reversed(opened) if min(mark.end, end) == border]:
            opened.remove(mark)
            yield f"{RESET}{_colour(mark.cluster)}]{_resume(opened)}"
        for mark in marks:
            if mark.start == border < end:
                opened.append(mark)
                number = f"{BOLD}[{mark.cluster}{RESET}"
                yield f"{RESET}{_colour(mark.cluster)}{number}{_colour(mark.cluster)} "


def _resume(opened: list[Mark]) -> str:
    return RESET + (_colour(opened[-1].cluster) if opened else "")


def _colour(cluster: int) -> str:
    return f"\x1b[38;5;{COLOURS[colour_of(cluster)][2]}m"


def _safe(text: str) -> str:
    return CONTROL.sub("�", text.replace("\r\n", "\n"))
