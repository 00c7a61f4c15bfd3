"""Tasks as child processes over the real wire: this side plays Storm's ShellSpout and ShellBolt."""
