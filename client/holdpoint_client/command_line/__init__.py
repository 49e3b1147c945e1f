"""The command line `holdpoint`. Each module of `commands` is one subcommand."""
