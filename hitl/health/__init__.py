"""Whether the gate is well: the same checks for probes of machines and for a page."""
