"""The electronics store: orders, money and mail, with its own small database.

The store knows nothing of approvals. It performs what a signed call asks, once per
idempotency key, and refuses what its own rules forbid.
"""
