"""How fast this machine is right now, beside the one on which the targets were set.

A target is scaled by bee-queue doing the same thing, where node is there; else, and for server time, by the raw server.
"""

from __future__ import annotations

from bench import others, raw
from bench.machine import quantile
from bench.others import Peer
from bench.raw import Raw
from bench.target import capped, figure
from skep.testing import Server

Scale = tuple[float, str]
Passes = dict[str, list[float]]
ROUND_TRIPS = 300


class Anchor:
    """Passes of the raw server and of other queues, taken between the passes of skep; the best of each counts."""

    def __init__(self, peers: list[Peer]) -> None:
        self._peers = peers
        self._bee = [peer for peer in peers if peer.name == others.BEE]
        self._raw: list[Raw] = []
        self._added: Passes = {}
        self._drained: Passes = {}
        self.round_trips: list[float] = []

    def measure_raw(self) -> None:
        """The raw server."""
        self._raw.append(raw.measure())

    def measure_adds(self) -> None:
        """bee-queue: adds in bulk."""
        for peer in self._bee:
            with Server(port=0) as server:
                self._added.setdefault(peer.name, []).append(peer.bulk(server))

    def measure_drains(self) -> None:
        """All that are here: one worker, and jobs that wait."""
        for peer in self._peers:
            with Server(port=0) as server:
                self._added.setdefault(peer.name, []).append(peer.bulk(server))
                self._drained.setdefault(peer.name, []).append(peer.drain(server))

    def measure_round_trips(self) -> None:
        """bee-queue: a job and its result, one after another."""
        for peer in self._bee:
            with Server(port=0) as server:
                self.round_trips += peer.round_trips(server, ROUND_TRIPS)

    def adds(self) -> Scale:
        """For adds a second."""
        return self._scale(self._added, others.BULK_PER_S)

    def runs(self) -> Scale:
        """For runs a second."""
        return self._scale(self._drained, others.DRAINED_PER_S)

    def trips(self) -> Scale:
        """For times of single round trips."""
        if self.round_trips:
            return capped(others.ROUND_TRIP_MS / quantile(self.round_trips, 0.5)), "bee-queue"
        return capped(max(each.one_by_one for each in self._raw) / raw.ONE_BY_ONE_PER_S), "raw"

    def server(self) -> Scale:
        """For processor time of the server."""
        return capped(raw.LIFE_US / min(each.life_us for each in self._raw)), "raw"

    def best_drain(self) -> tuple[float, str] | None:
        """The fastest of the other queues, and what each did; nothing without bee-queue, which is the fastest known."""
        best = {name: max(passes) for name, passes in self._drained.items()}
        if others.BEE not in best:
            return None
        return max(best.values()), ", ".join(f"{name} {figure(value)}" for name, value in best.items())

    def lines(self) -> list[tuple[str, str, str]]:
        """What each did here, and what it did then."""
        told: list[tuple[str, str, str]] = []
        if self._raw:
            batched = max(each.batched for each in self._raw)
            single = max(each.one_by_one for each in self._raw)
            life = min(each.life_us for each in self._raw)
            told += [
                ("raw server, enqueue in batches of 100", f"{figure(batched)} jobs/s", figure(raw.BATCHED_PER_S)),
                ("raw server, enqueue one by one", f"{figure(single)} jobs/s", figure(raw.ONE_BY_ONE_PER_S)),
                ("raw server, server time of a job's life", f"{figure(life)} us", figure(raw.LIFE_US)),
            ]
        told += self._rates("bulk add", self._added, others.BULK_PER_S)
        told += self._rates("drain, 1 process", self._drained, others.DRAINED_PER_S)
        if self.round_trips:
            middle = quantile(self.round_trips, 0.5)
            told.append((f"{others.BEE}, round trip, p50", f"{figure(middle)} ms", figure(others.ROUND_TRIP_MS)))
        return told

    def _rates(self, what: str, passes: Passes, reference: float) -> list[tuple[str, str, str]]:
        """Of others than bee-queue, no target depends on what they did then."""
        return [
            (f"{name}, {what}", f"{figure(max(each))} jobs/s", figure(reference) if name == others.BEE else "")
            for name, each in passes.items()
        ]

    def _scale(self, passes: Passes, reference: float) -> Scale:
        for peer in self._bee:
            return capped(max(passes[peer.name]) / reference), "bee-queue"
        return capped(max(each.batched for each in self._raw) / raw.BATCHED_PER_S), "raw"
