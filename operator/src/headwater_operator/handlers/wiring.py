"""Makes the informers of every watched kind in every watched namespace."""

from __future__ import annotations

from collections.abc import Iterable

from headwater_contracts.labels import LABEL_POOL
from headwater_operator.adapters import kinds
from headwater_operator.adapters.cache import LABELLED, WATCHED, Cache
from headwater_operator.adapters.informer import Informer
from headwater_operator.adapters.kinds import Kind
from headwater_operator.adapters.rest import KubeClient
from headwater_operator.ports import Clock


def build_informers(client: KubeClient, cache: Cache, clock: Clock, namespaces: Iterable[str]) -> list[Informer]:
    """One informer a kind and namespace; one a kind if no namespaces are named."""
    scopes: list[str | None] = list(namespaces) or [None]
    return [
        Informer(
            client,
            kind,
            cache.store(kind),
            clock,
            namespace=namespace,
            labels=LABEL_POOL if kind in LABELLED else "",
            # A Role in one namespace cannot grant nodes; without them a lost node is seen by its pods alone.
            optional=kind is kinds.NODE,
        )
        for kind in WATCHED
        for namespace in _scopes(kind, scopes)
    ]


def _scopes(kind: Kind, scopes: list[str | None]) -> list[str | None]:
    return scopes if kind.namespaced else [None]
