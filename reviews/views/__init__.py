"""The desk. A view loads for this person (404 otherwise), reads a form, calls one
operation and renders; every action works without JavaScript."""
