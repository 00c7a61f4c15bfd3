"""The source of the README's figures: `python -m benchmarks` measures, and says whether the targets are met."""
