"""Dialogues as people write them down: lines of "Name: what is said"."""

import re

#: A name has no colon and few words, so that "He said one thing that matters: go" is not one.
LINE = re.compile(r"\s*((?:[^\s:]+[ \t]+){0,3}[^\s:]+)[ \t]*:(?=\s|$)(.*)", re.DOTALL)

NO_TURNS = (
    "Expected lines of the form 'Name: text', each with who speaks and what is said, but none of "
    "the {n} lines has a name and a colon. Write them so, or leave out the speakers."
)


def read_turns(text: str) -> list[tuple[str | None, str]]:
    """Read a dialogue. A line without a name goes on with what the speaker before it says.

    text (str): Lines of the form "Name: text".
    RETURNS (List[Tuple[Optional[str], str]]): The speaker and the text of each turn, as `dialogue`
        takes them.
    """
    turns: list[tuple[str | None, str]] = []
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines:
        match = LINE.fullmatch(line)
        if match:
            turns.append((match[1].strip(), match[2].strip()))
        elif turns:
            speaker, said = turns[-1]
            turns[-1] = (speaker, f"{said} {line.strip()}".strip())
        else:
            turns.append((None, line.strip()))
    if lines and all(speaker is None for speaker, _ in turns):
        raise ValueError(NO_TURNS.format(n=len(lines)))
    return turns
