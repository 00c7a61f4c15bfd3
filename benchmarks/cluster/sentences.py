"""The text of every word count here: ten words a sentence."""

TEXT = (
    "storm makes it easy to reliably process unbounded streams of data doing for realtime processing what batch did for "
    "processing a tuple is acked once every tuple in its tree has been processed and failed when one of them is late"
)
WORDS = TEXT.split()


def sentence(n):
    """Return the n-th sentence."""
    start = n * 7
    return " ".join([WORDS[(start + i * 3) % len(WORDS)] for i in range(10)])
