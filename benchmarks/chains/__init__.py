"""Three shuffled bolts: apart, as a chain, and as one bolt by hand: `python -m benchmarks.chains`."""
