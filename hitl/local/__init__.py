"""A private installation on one machine: its own PostgreSQL and Valkey, one supervisor.
Nothing in here is loaded in production."""
