"""Many calls of several clients through a network that loses, repeats and holds back: each takes effect once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from skep.errors import ServerUnavailable
from skep.store.aio import AsyncStore
from skep.store.connect import Connection
from skep.store.sync import Store
from skep.testing import Server
from tests.support.counting import append, order
from tests.support.proxy import Action, Proxy

TROUBLE: tuple[Action, ...] = ("lose request", "lose reply", "repeat", "hold request", "pass", "pass", "pass", "pass")


class Ledger:
    """What callers were told of their words."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.not_done: list[str] = []

    def check(self, words: list[str]) -> None:
        """Each word that was told to be done is there once, and no other."""
        assert Counter(words) == Counter(self.done)
        assert not set(words) & set(self.not_done)


def plan(proxy: Proxy, seed: int, calls: int) -> None:
    dice = random.Random(seed)
    proxy.then(*dice.choices(TROUBLE, k=calls))


def work(store: Store, proxy: Proxy, ledger: Ledger, name: str) -> None:
    for number in range(40):
        word = f"{name}-{number}"
        try:
            store.send(append(word))
        except ServerUnavailable as error:
            if number % 5 == 0:
                proxy.deliver()
            (ledger.not_done if error.settle() is None else ledger.done).append(word)
        else:
            ledger.done.append(word)


async def work_async(store: AsyncStore, proxy: Proxy, ledger: Ledger, name: str) -> None:
    for number in range(40):
        word = f"{name}-{number}"
        try:
            await store.send(append(word))
        except ServerUnavailable as error:
            if number % 5 == 0:
                await asyncio.to_thread(proxy.deliver)
            (ledger.not_done if await error.settle() is None else ledger.done).append(word)
        else:
            ledger.done.append(word)


@pytest.mark.parametrize(("seed", "retry_for"), [(1, 0), (2, 0), (3, 0), (4, 5)])
def test_what_threads_are_told_is_what_the_server_did(
    proxy: Proxy, server: Server, seed: int, retry_for: float
) -> None:
    ledger = Ledger()
    plan(proxy, seed, 250)
    store = Store(Connection(proxy.url, retry_for=retry_for))

    with ThreadPoolExecutor(3) as threads:
        workers = [threads.submit(work, store, proxy, ledger, f"t{number}") for number in range(3)]
    for worker in workers:
        worker.result()
    proxy.deliver()
    store.close()

    calm = Store(Connection(server.url))
    ledger.check(calm.send(order()))
    calm.close()


@pytest.mark.parametrize(("seed", "retry_for"), [(1, 0), (2, 0), (3, 0), (4, 5)])
def test_what_coroutines_are_told_is_what_the_server_did(
    proxy: Proxy, server: Server, seed: int, retry_for: float
) -> None:
    ledger = Ledger()
    plan(proxy, seed, 250)

    async def main() -> None:
        store = AsyncStore(Connection(proxy.url, retry_for=retry_for))
        await asyncio.gather(*(work_async(store, proxy, ledger, f"c{number}") for number in range(3)))
        await store.close()

    asyncio.run(main())
    proxy.deliver()

    calm = Store(Connection(server.url))
    ledger.check(calm.send(order()))
    calm.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_of_one_caller_take_effect_in_the_order_in_which_he_said_them(proxy: Proxy, seed: int) -> None:
    plan(proxy, seed, 150)
    store = Store(Connection(proxy.url, retry_for=0))
    told: list[str] = []

    for number in range(40):
        try:
            store.send(append(str(number)))
        except ServerUnavailable as error:
            if error.maybe_done and number % 3 == 0:
                proxy.deliver()
        if number % 7 == 0:
            proxy.deliver()
    proxy.deliver()
    while not told:
        try:
            told = store.send(order())
        except ServerUnavailable:
            continue
    store.close()

    assert told == sorted(told, key=int)
    assert len(told) == len(set(told))
