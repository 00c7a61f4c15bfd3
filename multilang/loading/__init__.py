"""Finding topologies and components by the place where they are written: a module's name, or a file's path."""
