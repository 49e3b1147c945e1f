"""Side by side with the raw floor: what the gate costs on this machine, in one run."""
