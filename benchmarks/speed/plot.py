"""Time and memory against length, as an SVG file: two panels with logarithmic axes."""

import math
from html import escape

from candidates import Candidate
from measuring import MANY, Results

WIDTH, HEIGHT, LEFT, TOP, LEGEND = 420, 320, 60, 40, 200
#: Ours are drawn through, others dashed; a pair shares its colour.
COLOURS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#9c6b4e", "#a463f2"]

Points = list[tuple[float, float]]


def draw(candidates: list[Candidate], texts: dict[str, int], results: Results) -> str:
    """Draw what was measured of single texts.

    candidates (List[Candidate]): The candidates.
    texts (Dict[str, int]): The texts, and how many words they have.
    results (Results): What was measured.
    RETURNS (str): The SVG.
    """
    seconds: dict[str, Points] = {}
    memory: dict[str, Points] = {}
    for candidate in candidates:
        for text, n_words in texts.items():
            cell = results[candidate.name].get(text)
            if text != MANY and cell and not cell.failed:
                seconds.setdefault(candidate.name, []).append((n_words, min(cell.seconds)))
                memory.setdefault(candidate.name, []).append((n_words, cell.memory / 2**30))
    styles = _styles([c for c in candidates if c.name in seconds])
    width = 2 * (WIDTH + LEFT) + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT + 2 * TOP}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *_panel("seconds", LEFT, seconds, styles),
        *_panel("peak of memory, GB", 2 * LEFT + WIDTH, memory, styles),
    ]
    for number, (name, style) in enumerate(styles.items()):
        x, y = 2 * (WIDTH + LEFT) + 10, TOP + 20 * number
        parts.append(f'<line x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}" {style}/>')
        parts.append(f'<text x="{x + 36}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _styles(candidates: list[Candidate]) -> dict[str, str]:
    colours: dict[str, str] = {}
    styles = {}
    for candidate in candidates:
        pair = candidate.against or candidate.name
        colour = colours.setdefault(pair, COLOURS[len(colours) % len(COLOURS)])
        dashes = ' stroke-dasharray="6 4"' if candidate.environment else ""
        styles[candidate.name] = f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'
    return styles


def _panel(title: str, left: int, lines: dict[str, Points], styles: dict[str, str]) -> list[str]:
    points = [point for line in lines.values() for point in line]
    if not points:
        return []
    across, up = (_Scale([p[axis] for p in points]) for axis in (0, 1))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return left + WIDTH * across(point[0]), TOP + HEIGHT * (1 - up(point[1]))

    bottom = TOP + HEIGHT
    parts = [f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}, by words</text>']
    for value in across.marks:
        x, _ = place((value, up.marks[0]))
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{value:,g}</text>')
    for value in up.marks:
        _, y = place((across.marks[0], value))
        end = left + WIDTH
        parts.append(f'<line x1="{left}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
    for name, line in lines.items():
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line))
        parts.append(f'<polyline points="{places}" {styles[name]}/>')
    return parts


class _Scale:
    """From values to places between 0 and 1, on a logarithmic axis between powers of ten."""

    def __init__(self, values: list[float]) -> None:
        self.first = math.floor(math.log10(min(values)))
        self.last = max(self.first + 1, math.ceil(math.log10(max(values))))
        self.marks = [10.0**power for power in range(self.first, self.last + 1)]

    def __call__(self, value: float) -> float:
        return (math.log10(value) - self.first) / (self.last - self.first)
