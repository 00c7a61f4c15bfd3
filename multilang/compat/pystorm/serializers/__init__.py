"""pystorm's serializers, for components that are given streams of their own, as in unit tests."""
