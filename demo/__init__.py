"""An example deployment: an electronics store, Riley its agent, and their policy.

The store and Riley are processes of their own and talk HTTP only. `seed` alone runs
inside Counterseal, to create the people, the policy and Riley's key.
"""
