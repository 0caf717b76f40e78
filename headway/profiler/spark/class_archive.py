"""Spark's classes as Java itself keeps them between runs: parsed, verified, ready to map.

Most of what a short session costs is Java reading 14 000 classes. A JVM started with
``-XX:ArchiveClassesAtExit`` writes those it has loaded into an archive when it ends; one started
with ``-XX:SharedArchiveFile`` maps them instead of reading them. Java checks that the archive fits
and goes without it where it does not.

The archives lie in the user's cache: ``$HEADWAY_CACHE_DIR``, else ``$XDG_CACHE_HOME/headway``, else
``~/.cache/headway``. Where that cannot be written, everything works without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.errors import SparkUnavailableError
from headway.profiler.spark.java import Java

# Two installations that are used in turn keep theirs; a third one takes the older one's place.
_NUM_KEPT = 2
_ENOUGH_DISK_BYTES = 1_000_000_000
# Longer than any JVM takes to write one: what is older was left by a JVM that was killed.
_UNFINISHED_FOR_S = 3600.0

_FILE_NAME = "spark.jsa"
_FOLDER_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSaving:
    """What a JVM that was told to does when it ends: write the classes it has loaded to a file.

    ``announce`` is called before, for it takes a while.
    """

    file: Path
    announce: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoading:
    """How a JVM gets at Spark's classes.

    Parameters
    ----------
    java_options : tuple of str
        Options that it must be given.
    conf_folder : Path, optional
        The one folder that its class path may hold.
    saving : ClassSaving, optional
        Given if the options make it save its classes.
    """

    java_options: tuple[str, ...] = ()
    conf_folder: Path | None = None
    saving: ClassSaving | None = None


@contextlib.contextmanager
def class_loading(
    java: Java, spark_home: Path, announce_saving: Callable[[], None] | None
) -> Iterator[ClassLoading]:
    """How a JVM that starts and ends inside the block gets at Spark's classes best.

    Parameters
    ----------
    java : Java
        What Spark runs on.
    spark_home : Path
        The installation; its folder ``jars`` is the class path.
    announce_saving : callable, optional
        If given, the JVM saves its classes where none are saved; called before it does.
    """
    archive = find_class_archive(java, spark_home)
    if archive.is_usable():
        archive.mark_used()
        try:
            yield ClassLoading(
                java_options=(f"-XX:SharedArchiveFile={archive.file}",),
                conf_folder=archive.empty_folder,
            )
        except SparkUnavailableError:
            # Perhaps because of it: the next start goes without.
            archive.remove()
            raise
    elif announce_saving and archive.is_makeable():
        with archive.unfinished() as file:
            yield ClassLoading(
                java_options=(f"-XX:ArchiveClassesAtExit={file}",),
                conf_folder=archive.empty_folder,
                saving=ClassSaving(file=file, announce=announce_saving),
            )
    else:
        yield ClassLoading()


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The place of the archive for one Spark on one Java; the file may not be there yet."""

    folder: Path

    @property
    def file(self) -> Path:
        """The archive."""
        return self.folder / _FILE_NAME

    @property
    def empty_folder(self) -> Path:
        """An empty folder at a constant path.

        Java makes no archive while its class path holds a folder with anything in it, and uses
        none if the class path has changed. Spark puts its configuration folder on it.
        """
        return self.folder / "conf"

    def is_usable(self) -> bool:
        """Whether the archive is there."""
        return self.file.is_file() and self.empty_folder.is_dir()

    def mark_used(self) -> None:
        """Note that it was needed, for the choice of which ones to keep."""
        with contextlib.suppress(OSError):
            os.utime(self.file)

    def is_makeable(self) -> bool:
        """Whether the cache can be written and the disk has room; makes the folders."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.empty_folder.mkdir(parents=True, exist_ok=True)
            return (
                os.access(self.folder, os.W_OK)
                and shutil.disk_usage(self.folder).free > _ENOUGH_DISK_BYTES
            )
        except OSError:
            return False

    @contextlib.contextmanager
    def unfinished(self) -> Iterator[Path]:
        """A file for a JVM to write, which becomes the archive if the block ends well.

        The JVM must have ended inside the block. Whoever is first to finish makes the archive;
        others that were at it replace it by their own.
        """
        part = self.folder / f"{os.getpid()}.part"
        try:
            yield part
            with contextlib.suppress(OSError):
                _flush(part)
                part.replace(self.file)
                _remove_others(self.folder)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the archive: a JVM did not start with it."""
        with contextlib.suppress(OSError):
            self.file.unlink(missing_ok=True)


def find_class_archive(java: Java, spark_home: Path) -> ClassArchive:
    """The archive for a Spark installation on a Java.

    Parameters
    ----------
    java : Java
        What Spark runs on.
    spark_home : Path
        The installation; its folder ``jars`` is the class path.

    Returns
    -------
    ClassArchive
        One of its own for every Java build and every state of the jars.
    """
    jars = sorted((spark_home / "jars").iterdir())
    identity = [str(java.home), java.build, str(spark_home)]
    for jar in jars:
        status = jar.stat()
        identity.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()
    return ClassArchive(_cache_folder() / "spark-classes" / digest[:16])


def _cache_folder() -> Path:
    if own := os.environ.get("HEADWAY_CACHE_DIR"):
        return Path(own).absolute()
    if (everyones := os.environ.get("XDG_CACHE_HOME")) and Path(everyones).is_absolute():
        return Path(everyones) / "headway"
    return Path(os.path.expanduser("~/.cache/headway"))  # noqa: PTH111  # has no home, no error


def _flush(file: Path) -> None:
    # Java trusts what it maps: after a power failure the name must not lead to holes.
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _remove_others(current: Path) -> None:
    """Delete archives of other installations but the last used, and what killed JVMs left."""
    ours = [
        entry
        for entry in current.parent.iterdir()
        if _FOLDER_NAME.fullmatch(entry.name) and not entry.is_symlink() and entry.is_dir()
    ]
    ours.sort(key=_last_used_s, reverse=True)
    for folder in ours[_NUM_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
    for part in (part for folder in ours[:_NUM_KEPT] for part in folder.glob("*.part")):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _UNFINISHED_FOR_S:
                part.unlink()


def _last_used_s(folder: Path) -> float:
    archive = folder / _FILE_NAME
    # Without one, it is being made.
    return (archive if archive.exists() else folder).stat().st_mtime
