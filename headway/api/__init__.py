"""The Python calls: one for each command, in the module of the command's name.

``headway.plan(...)`` is ``headway.api.plan.plan(...)``, loaded when it is first used, and so are
the others that ``dir(headway)`` shows. Spark and the numeric libraries are loaded by the call
that needs them.
"""
