"""A private installation on one machine: its own PostgreSQL and Valkey, and a
supervisor.

Production loads nothing from this package.
"""
