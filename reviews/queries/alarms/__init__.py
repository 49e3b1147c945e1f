"""Alarms as people read them: a list, a page for each, and the words of each kind."""
