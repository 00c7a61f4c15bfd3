"""The process of one task: the connection to the parent, the loop, and the watchdog thread beside user code."""
