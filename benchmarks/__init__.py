"""What the README's figures come from: `python -m benchmarks` measures and says whether the targets are met."""
