"""Methods that learn from augmented views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coterie.checks import check_number
from coterie.errors import SettingError
from coterie.methods.trained import TrainedMethod
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.registry import parse_views

VIRTUAL = "virtual"


@dataclass(kw_only=True, eq=False, repr=False)
class ContrastiveMethod(TrainedMethod):
    """A :class:`TrainedMethod` that learns from augmented views.

    Parameters
    ----------
    augmentation:
        ``"virtual"`` (dropout alone), or an augmenter by name: ``coterie augment --list`` shows them;
        ``first+second`` applies two in a row, ``this | that`` uses a different augmenter for each view.
    augmentation_ratio:
        Share of the words that an augmenter changes, unless its own settings give another.
    """

    augmentation: str = "word_deletion"
    augmentation_ratio: float = 0.2

    @property
    def _virtual(self) -> bool:
        return self.augmentation == VIRTUAL

    def _check_settings(self) -> None:
        super()._check_settings()
        check_number("augmentation_ratio", self.augmentation_ratio, above=0, below=1)
        if not isinstance(self.augmentation, str):
            raise SettingError(f"augmentation={self.augmentation!r} must be the name of an augmenter, or 'virtual'")
        self._augmenters()

    def _augmenters(self) -> Mapping[str, Augmenter]:
        from coterie.training.objective import AUGMENTED

        if self._virtual:
            return {}
        try:
            return dict(zip(AUGMENTED, parse_views(self.augmentation, self.augmentation_ratio), strict=True))
        except SettingError as error:
            raise SettingError(f"augmentation={self.augmentation!r}: {error}") from error
