"""Derivatives of what Enzyme does not know.

Two ways: a function in terms of others that Enzyme knows (`memory_*.ll`, `reshape.ll`,
`special.ll`), and one in Python with the value of the real one
(`special.py`). Names that stand for something else once Enzyme is done are in `resolved.ll`.

Registering derivatives with the plugin is not one of them: under forward mode inside reverse mode this plugin takes the tangent of a
registered function for zero.
"""
