"""Files by how they get their names, and the requests to a store that they take."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from headway.domain import JobProfile
from headway.domain.writes import StorePrice
from headway.models.arrays import Array

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FILE_SYSTEM_MANAGER = "FileSystemBasedCheckpointFileManager"


class Files(NamedTuple):
    """Files per batch by how they come to be: named when they are complete, or written in place."""

    renamed: Array
    in_place: Array

    @property
    def total(self) -> Array:
        """All of them."""
        return self.renamed + self.in_place

    def requests(self, price: StorePrice) -> Array:
        """Requests that they take at a store, charged as writes; those that list are among them."""
        renamed = price.requests_renamed + price.lists_renamed
        in_place = price.requests_in_place + price.lists_in_place
        return renamed * self.renamed + in_place * self.in_place

    def lists(self, price: StorePrice) -> Array:
        """Those of the requests that list a folder, or look for a file in it."""
        return price.lists_renamed * self.renamed + price.lists_in_place * self.in_place


def price_of_job(profile: JobProfile, price: StorePrice) -> StorePrice:
    """What a store charges a job, by how Spark gives the files of its checkpoint their names.

    Parameters
    ----------
    profile : JobProfile, the job, by the manager of its checkpoint files
    price : StorePrice, what the store charges with Spark's usual manager

    **(F7)** LIST requests. Before a file is written, renamed or deleted, Hadoop asks whether its
    name, its new name and its folder are folders. An object store has none, so each question is a
    LIST, which S3 charges like a write. By `FileContext`, Spark's usual manager of checkpoint
    files, the same is asked at three levels, by `FileSystemBasedCheckpointFileManager` at one.

    Source: Hadoop's ``AbstractFileSystem``, ``DelegateToFileSystem``, ``FileSystem`` and
    ``S3AFileSystem`` (3.5, 2026).

    >>> from headway.formats.profile_file import load_profile
    >>> price = StorePrice(
    ...     store="s3", price_per_write=5e-6, requests_in_place=1, requests_renamed=2,
    ...     date="2026-11-29", lists_renamed=10, lists_by_file_system=5,
    ... )
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> price_of_job(profile, price).lists_renamed
    10
    """
    manager = profile.application.properties.get(_FILE_MANAGER, "")
    if price.lists_by_file_system is None or not manager.endswith(_FILE_SYSTEM_MANAGER):
        return price
    return replace(price, lists_renamed=price.lists_by_file_system)
