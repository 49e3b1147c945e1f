"""The command line `counterseal`. Each module of `commands` is one subcommand."""
