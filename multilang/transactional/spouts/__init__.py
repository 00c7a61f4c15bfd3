"""Transactional spouts that are ready to use, with a module for each kind of source."""
