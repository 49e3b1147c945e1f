"""The outside of a gate, as several runs play it: agents, people, services, receivers.

`demo`, `chaos`, `bench` and the retail tests share it. It knows none of them, and no
test. `cast` and `processes` use the gate's own code; the others know it by HTTP.
"""
