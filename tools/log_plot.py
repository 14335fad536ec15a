"""Small log-log plots as SVG, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]
Panel = tuple[str, str, Mapping[str, Points]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 280, 62, 36, 34, 44
COLORS = ("#1f5fa8", "#c0572b")


def log_plot(panels: Sequence[Panel], columns: int = 2) -> str:
    """Panels of (label of x, label of y, lines by name), side by side."""
    rows = -(-len(panels) // columns)
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * columns} {HEIGHT * rows}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH * columns}" height="{HEIGHT * rows}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        x, y = WIDTH * (place % columns), HEIGHT * (place // columns)
        whole.append(f'<g transform="translate({x} {y})">{_panel(panel)}</g>')
    return "\n".join([*whole, "</svg>"]) + "\n"


def _panel(panel: Panel) -> str:
    x_label, y_label, lines = panel
    points = [point for line in lines.values() for point in line]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = []
    for decade in range(low_x, high_x + 1):
        x, bottom = at(10**decade, 10**low_y)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{_number(decade)}</text>')
    for decade in range(low_y, high_y + 1):
        left, y = at(10**low_x, 10**decade)
        parts.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_number(decade)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text x="{LEFT}" y="16">{y_label}</text>')
    for place, (name, line) in enumerate(lines.items()):
        color = COLORS[place % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in (at(*point) for point in line)
        ]
        parts.append(f'<text x="{WIDTH - RIGHT - 110 + 60 * place}" y="16" fill="{color}">{name}</text>')
    return "\n".join(parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _number(decade: int) -> str:
    return f"{10**decade:,}" if decade >= 0 else f"{10**decade:g}"
