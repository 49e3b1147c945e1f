"""What a person may read at the desk. Loading is authorising: everything here starts
from `visible`, so what a person may not see is simply not there (404).

Blindness lives here too: another's verdict on a request that is not settled is never
loaded for someone who may still decide it.
"""
