"""The subcommands: each module here is one, and needs no entry elsewhere.

A module is named like its command and has `add_parser(commands)`. It adds a parser for
its command, with `run` as a default of the parser: a function that takes the parsed
arguments and returns an ExitCode. Errors of the client may pass through it. A command
that a person gives with their token also sets `by_person`.
"""
