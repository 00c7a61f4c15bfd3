"""Finding topologies and components by a module's name, or a file's path."""
