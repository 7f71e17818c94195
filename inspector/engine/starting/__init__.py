"""Have workers ready sooner: import less, and earlier, and keep compiled code."""
