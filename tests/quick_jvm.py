"""The JVM of the session that tests share: no process for a file, and each class looked up once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.sources import ROOT

_SOURCES = Path(__file__).parent / "java"


def conf_of_local_files(folder: Path) -> dict[str, str]:
    """Settings with which Spark starts no process for each file; none without a Java compiler.

    Hadoop starts a ``chmod`` for each file and each folder that it makes, unless its native library
    is there: tests of streaming queries make ten thousand. ``folder`` is for the class that sets
    permissions itself.
    """
    import pyspark

    sys.path.insert(0, str(ROOT / "scripts"))
    import build_jars  # type: ignore[import-not-found]

    compiler = build_jars.java_compiler()
    if compiler is None:
        return {}
    spark_jars = Path(pyspark.__file__).parent / "jars"
    for name, content in build_jars.compiled(_SOURCES, compiler, spark_jars).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return {
        "spark.driver.extraClassPath": str(folder),
        "spark.hadoop.fs.file.impl": "headway.tests.LocalFiles",
    }


def look_classes_up_once() -> None:
    """Keep what Py4J finds by a name.

    PySpark asks for the same few classes with each expression, and each time the JVM looks into
    hundreds of jars for each of the packages that could have one of this name.
    """
    from py4j.java_gateway import JavaClass, JavaPackage, JVMView

    def keep(owner: type[Any]) -> None:
        find = owner.__getattr__

        def find_once(self: Any, name: str) -> Any:
            found = find(self, name)
            # What is no class yet may be one after an import; packages have lower case letters.
            if isinstance(found, JavaClass) or (isinstance(found, JavaPackage) and name.islower()):
                vars(self)[name] = found
            return found

        owner.__getattr__ = find_once

    for owner in (JVMView, JavaPackage):
        keep(owner)
