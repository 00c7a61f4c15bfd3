"""Transactional spouts that are ready to use, a module for each source."""
