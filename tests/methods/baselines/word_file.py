"""Word vectors that separate the topics of ``topic_texts``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from conftest import FILLERS, TOPICS


def write_word_file(path: Path) -> Path:
    """Words of a topic lie together; fillers lie in a direction that all texts share."""
    generator = np.random.default_rng(0)
    lines = []
    for place, words in enumerate([*TOPICS.values(), FILLERS]):
        for word in words:
            vector = generator.normal(scale=0.3, size=8)
            vector[place] += 2
            lines.append(f"{word} {' '.join(f'{value:.5f}' for value in vector)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
