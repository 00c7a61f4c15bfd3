"""What transactions cost: the word count with them against the same without."""
