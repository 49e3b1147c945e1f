"""How the product becomes packages: `make dist`."""
