"""The TypeScript client under Node, as its source is written (Node leaves the types
out): against the real gate, against a gate that fails on demand, and beside the Python
client. `tsc` checks its types where `npm ci` has installed it, which CI does not."""
