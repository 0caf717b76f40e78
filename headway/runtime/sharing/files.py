"""Small files on any file system that Spark supports, written atomically."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headway.errors import HeadwayError, first_line
from headway.runtime.given import require_no_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In these, a put is atomic, and a rename is a copy.
_OBJECT_STORES = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn")


class SparkFiles:
    """Files through Hadoop's file systems, as accessed by Spark.

    What a file system refuses is raised as a HeadwayError with the path.
    """

    def __init__(self, spark: SparkSession) -> None:
        require_no_connect(
            spark,
            "gives no access to the files of a checkpoint or a store",
            "start the query in its driver",
        )
        session: Any = spark
        self._jvm: Any = session._jvm
        # As Spark itself reads a checkpoint: with the settings of the session, too.
        self._conf = session._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        with _in_words(path):
            return bool(self._system(path).exists(self._path(path)))

    def read(self, path: str) -> str:
        """The whole text of a file; raises FileNotFoundError if there is none."""
        with _in_words(path):
            stream = self._system(path).open(self._path(path))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write_new(self, path: str, text: str) -> None:
        """Write a new file, atomically.

        A file that exists already is refused, since another process writes to the folder.
        """
        with _in_words(path):
            system, target = self._system(path), self._path(path)
            system.mkdirs(target.getParent())
            if system.getScheme() in _OBJECT_STORES:
                self._put(system, target, text)
                return
            # Hidden names are not listed.
            draft = self._path(f"{target.getParent()}/.{target.getName()}.{uuid4().hex}")
            self._put(system, draft, text)
            if not self._name(system, draft, target):
                system.delete(draft, False)
                raise HeadwayError(
                    f"{path}: there already; does another query write to this folder?"
                )

    def names(self, folder: str) -> list[str]:
        """Names in a folder, without hidden ones; none if there is no folder."""
        with _in_words(folder):
            system, path = self._system(folder), self._path(folder)
            if not system.exists(path):
                return []
            names = [str(status.getPath().getName()) for status in system.listStatus(path)]
        return sorted(name for name in names if not name.startswith("."))

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""
        with _in_words(path):
            self._system(path).delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)

    def _name(self, system: Any, draft: Any, target: Any) -> bool:
        """Rename a draft, unless a file has that name."""
        return not system.exists(target) and bool(system.rename(draft, target))

    def _put(self, system: Any, path: Any, text: str) -> None:
        stream = system.create(path, False)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """What Hadoop says about a path, in one line."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getSimpleName())
        if name == "FileNotFoundException":
            raise FileNotFoundError(path) from None
        reason = first_line(error.java_exception.getMessage() or name)
        raise HeadwayError(f"{path}: its file system refuses it: {reason}") from None
