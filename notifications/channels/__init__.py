"""The channels by which people hear of requests: one module a channel, found by
`registry`."""
