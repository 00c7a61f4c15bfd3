"""Tasks as child processes on the real wire: this side does what Storm's ShellSpout and ShellBolt do."""
