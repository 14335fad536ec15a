"""Train encoders: the training loop with its stages, objectives and callbacks, and the label-free stop."""
