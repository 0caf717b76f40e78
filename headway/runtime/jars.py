"""Headway's Java classes: jars that ship with it, loaded into the JVM of a running session.

A jar lies beside its sources, from which ``make jars`` builds it. Its classes are the same for
every supported Spark, so nothing is compiled or downloaded where a query runs, and no class is
read from a folder that another user can write to.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import re
import weakref
from importlib import resources
from pathlib import Path
from typing import Any

from headway.errors import SparkUnavailableError

OLDEST_JAVA = 17
_LOADERS: weakref.WeakKeyDictionary[Any, dict[Path, Any]] = weakref.WeakKeyDictionary()


@functools.cache
def shipped_jar(package: str) -> Path:
    """The jar of a Python package that contains Java sources, named after the package.

    If Headway is imported from an archive (``spark-submit --py-files``), the jar is unpacked into a
    temporary file of this user, which is removed at the end of the process.
    """
    jar = resources.files(package).joinpath(f"{package.rpartition('.')[2]}.jar")
    unpacked = contextlib.ExitStack()
    atexit.register(unpacked.close)
    return unpacked.enter_context(resources.as_file(jar))


def class_loader(gateway: Any, jar: Path) -> Any:
    """The class loader of a jar in the JVM of a session.

    Each JVM has one for each jar: Py4J caches methods by class name, and those from another loader
    do not accept objects of this one. A JVM that is older than the classes is refused.
    """
    loaders = _LOADERS.setdefault(gateway, {})
    if jar not in loaders:
        jvm = gateway.jvm
        _require_java(jvm.java.lang.System.getProperty("java.specification.version"))
        urls = gateway.new_array(jvm.java.net.URL, 1)
        urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
        parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        loaders[jar] = jvm.java.net.URLClassLoader(urls, parent)
    return loaders[jar]


def new_object(gateway: Any, package: str, class_name: str, *arguments: Any) -> Any:
    """An object of a class with one constructor, which is in the jar of a package."""
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for at, value in enumerate(arguments):
        if value is not None:  # which the array has already
            values[at] = value
    loader = class_loader(gateway, shipped_jar(package))
    return loader.loadClass(class_name).getConstructors()[0].newInstance(values)


def _require_java(specification_version: str) -> None:
    """Refuse a JVM that is too old, by its version, e.g. ``17`` or ``1.8``."""
    number = re.match(r"(?:1\.)?(\d+)", specification_version)
    if number is not None and int(number[1]) < OLDEST_JAVA:
        raise SparkUnavailableError(
            f"the driver runs on Java {number[1]}; Headway's classes need Java {OLDEST_JAVA} or "
            "newer: set JAVA_HOME to one before Spark starts"
        )
