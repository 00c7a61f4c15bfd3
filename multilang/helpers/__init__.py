"""Small things that all packages use."""
