"""The cost of transactions: the word count with them and without."""
