"""The electronics store: orders, money and mail, with its own small database.

It knows nothing of approvals. It does what a signed call asks, once per idempotency
key, and refuses what its own rules forbid.
"""
