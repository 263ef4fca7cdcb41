"""Which calls run, which wait for a person and which are refused; and whether a config protects what it seems to."""
