from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from skep.worker.slots import Slots


def on_a_loop(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_who_asks_first_gets_all_that_is_free() -> None:
    async def go() -> None:
        slots = Slots(10)
        asker = slots.enter(40)
        asker.hungry = True

        assert await slots.take(asker) == 10
        assert slots.take_now(asker) == 0

    on_a_loop(go())


def test_a_claim_is_for_half_of_many_slots_so_that_the_others_can_run_meanwhile() -> None:
    async def go() -> None:
        slots = Slots(200)
        asker = slots.enter(40)
        asker.hungry = True

        assert [await slots.take(asker), slots.take_now(asker), slots.take_now(asker)] == [100, 100, 0]

    on_a_loop(go())


def test_a_claim_for_few_slots_is_not_made_smaller() -> None:
    async def go() -> None:
        slots = Slots(60)
        asker = slots.enter(40)
        asker.hungry = True

        assert [await slots.take(asker), slots.take_now(asker)] == [50, 10]

    on_a_loop(go())


def test_slots_that_are_released_in_one_turn_are_granted_together() -> None:
    async def go() -> None:
        slots = Slots(10)
        asker = slots.enter(40)
        asker.hungry = True
        await slots.take(asker)
        asking = asyncio.ensure_future(slots.take(asker))
        await asyncio.sleep(0)
        for _ in range(7):
            slots.release()

        assert await asking == 7

    on_a_loop(go())


def test_a_less_important_queue_waits_while_a_more_important_one_is_hungry() -> None:
    async def go() -> None:
        slots = Slots(2)
        high, low = slots.enter(20), slots.enter(40)
        high.hungry = low.hungry = True
        low_asks = asyncio.ensure_future(slots.take(low))
        await asyncio.sleep(0)
        before = low_asks.done()
        high.hungry = False
        slots.release(0)

        assert not before
        assert await low_asks == 2

    on_a_loop(go())


def test_equal_queues_share_what_is_free_and_take_turns() -> None:
    async def go() -> None:
        slots = Slots(4)
        askers = [slots.enter(40) for _ in range(2)]
        for each in askers:
            each.hungry = True
        slots.free = 0
        asking = [asyncio.ensure_future(slots.take(each)) for each in askers]
        await asyncio.sleep(0)
        slots.release(4)

        assert await asyncio.gather(*asking) == [2, 2]

    on_a_loop(go())


def test_who_is_passed_over_waits_no_longer_and_gets_nothing() -> None:
    async def go() -> None:
        slots = Slots(1)
        asker = slots.enter(40)
        asker.hungry = True
        await slots.take(asker)
        asking = asyncio.ensure_future(slots.take(asker))
        await asyncio.sleep(0)
        slots.pass_over(asker)

        assert await asking == 0

    on_a_loop(go())


def test_slots_granted_to_who_was_cancelled_are_free_again() -> None:
    async def go() -> None:
        slots = Slots(3)
        asker = slots.enter(40)
        asker.hungry = True
        slots.free = 0
        asking = asyncio.ensure_future(slots.take(asker))
        await asyncio.sleep(0)
        slots.release(3)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

        assert slots.free == 3

    on_a_loop(go())


def test_a_paused_queue_is_granted_nothing_and_holds_nobody_back() -> None:
    async def go() -> None:
        slots = Slots(3)
        paused, other = slots.enter(10), slots.enter(40)
        paused.hungry = other.hungry = True
        paused.open = False

        assert slots.take_now(paused) == 0
        assert slots.take_now(other) == 3

    on_a_loop(go())
