"""The one training loop: stages, objectives, callbacks, and the label-free stop."""
