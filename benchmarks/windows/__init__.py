"""Windows against the same topology without them."""
