"""TSDAE: a denoising auto-encoder adapts the encoder to the texts, then k-means."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.checks import check_number, check_whole
from coterie.encoders.transformer import TransformerEncoder
from coterie.language.denoising import NOISED, Reconstruction, SentenceDecoder, check_decoder, warming
from coterie.methods.trained import TrainedMethod, TrainingStart
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.config import TrainingConfig
from coterie.training.objective import Stage


@dataclass(kw_only=True, eq=False, repr=False)
class TSDAE(TrainedMethod):
    """TSDAE (Wang, Reimers and Gurevych, 2021), then k-means: the effect of adaptation to the texts alone.

    Words are deleted from a text, and a decoder reconstructs the whole text from its vector alone, so the vector must
    hold the content of the text. TSDAE is the first stage of ClusterBERT and a baseline in that paper.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    decoder_epochs:
        Epochs at the beginning in which only the decoder's own parameters learn, with the encoder frozen.
    denoising_epochs:
        Epochs in which both learn. Where ``training`` limits the run further, both numbers shrink in proportion.
    noise:
        Share of the words that are deleted.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    training:
        Batch size, learning rates, step cap: see :class:`~coterie.training.config.TrainingConfig`. The stages have
        fixed lengths: the label-free stop is not used. A configuration of your own replaces all of the method's;
        ``set_params(training__max_steps=4)`` changes one.
    random_state:
        Seed of everything.

    Attributes
    ----------
    initial_labels_:
        k-means before training. There is no clustering head: ``head_labels_`` and ``kmeans_labels_`` are ``labels_``.

    Differs from the paper
    ----------------------
    - Backbone all-MiniLM-L6-v2 with its own pooling, a sentence encoder already, not CLS of bert-base-uncased.
    - The decoder's own parts (attention to the sentence, output layer) have random initial weights: they learn alone
      for ``decoder_epochs`` first, so that their first errors do not change the encoder.
    - A rate of 5e-6, not 3e-5, as in ClusterBERT: the more this encoder changes, the more it forgets of its
      pretraining. Batches of 128, not 8, and two epochs of at most 1,000 steps, not 100,000 steps, for time. Length 64.
    - The loss is a mean over tokens; duplicate texts are used once, weighted by their count.

    Examples
    --------
    >>> from coterie import TSDAE
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> TSDAE(n_clusters=2).set_params(training__max_steps=5).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    decoder_epochs: int = 1
    denoising_epochs: int = 2
    noise: float = 0.6
    training: TrainingConfig = TrainingConfig(
        max_epochs=None, max_steps=1000, batch_size=128, learning_rate=5e-6, head_learning_rate=1e-3
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("decoder_epochs", self.decoder_epochs, least=0)
        check_whole("denoising_epochs", self.denoising_epochs, least=1)
        check_number("noise", self.noise, above=0, below=1)

    def _check_backbone(self, encoder: TransformerEncoder) -> None:
        check_decoder(encoder)

    def _augmenters(self) -> dict[str, Augmenter]:
        return {NOISED: WordDeletion(self.noise)}

    def _stages(self, start: TrainingStart) -> list[Stage]:
        decoder = SentenceDecoder(start.encoder, start.seed)
        denoising = Reconstruction(decoder, self.training.learning_rate)
        stages = [
            warming(decoder, self.training.head_learning_rate, self.decoder_epochs),
            Stage("denoising", denoising, epochs=self.denoising_epochs, stops=False),
        ]
        return [stage for stage in stages if stage.epochs]
