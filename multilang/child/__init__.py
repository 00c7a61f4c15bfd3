"""The process of one task: the conversation with Storm's parent, the loop, and the thread that watches over user code."""
