"""`make bench`: what the gate costs on this machine beside the floor, in one run."""
