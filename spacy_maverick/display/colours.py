"""Colours that people with any kind of colour vision can tell apart, after the set of Okabe and
Ito. More clusters than colours also differ in the kind of their line, and all of them by number.
The same order is kept in `page.css`, where each colour has a light and a dark form."""

#: The colours by name, light form, and the number of the nearest one of a terminal with 256.
COLOURS = (
    ("blue", "#0072b2", 33),
    ("vermilion", "#d55e00", 202),
    ("green", "#009e73", 36),
    ("orange", "#e69f00", 214),
    ("purple", "#b0578d", 175),
    ("sky", "#56b4e9", 117),
    ("grey", "#777777", 250),
)
#: Solid, dashed, dotted.
N_LINES = 3


def colour_of(cluster: int) -> int:
    """RETURNS (int): The place of a cluster's colour in `COLOURS`; clusters count from 1."""
    return (cluster - 1) % len(COLOURS)


def line_of(cluster: int) -> int:
    """RETURNS (int): The kind of a cluster's line."""
    return (cluster - 1) // len(COLOURS) % N_LINES
