"""Every page of the desk in every state, as scenes that can be opened in a browser.

A scene says who looks, at which route, and what must be read there; it is built by the
product's own operations on the demo's store. `test_gallery.py` opens each wide and
narrow, light and dark, lets axe look at it and, for `make gallery`, takes its picture.
"""
