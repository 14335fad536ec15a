"""Language-model heads and the methods that need them: masked-word prediction, and augmenters by language models."""
