from __future__ import annotations

import pytest

from skep.core.call import Call, Script
from skep.core.lanes import LONGEST, Fate, GivenUp, Lane, Step, Trip, lane_name

FENCE = Script("fence", "", "")


def a_trip(*, laned: bool = True, again: bool = False, loose: bool = False) -> Trip:
    trip = Trip(Call(Script("add", "", ""), ("skep:{mail}",), (), bytes, laned=laned, again=again), began=100.0)
    if laned:
        trip.enter(Lane("host:1:1700000000:abc"))
    trip.loose = loose
    return trip


def test_a_lane_is_named_by_host_process_birth_and_chance() -> None:
    name = lane_name("a host: with ünfit\x00 letters and far too long", 42, 1_700_000_000, "c0ffee")

    assert name == "ahostwithnfitlettersa:42:1700000000:c0ffee"[:20] + ":42:1700000000:c0ffee"


def test_every_call_of_a_lane_has_the_next_number_in_sixteen_digits() -> None:
    lane = Lane("host:1:1700000000:abc")

    said = [lane.next(), lane.next()]

    assert said == [
        "host:1:1700000000:abc 0000000000000001",
        "host:1:1700000000:abc 0000000000000002",
    ]


def test_a_lane_whose_client_waits_for_copies_says_so_before_the_number() -> None:
    lane = Lane("host:1:1700000000:abc", copies=True)

    assert lane.next() == "host:1:1700000000:abc+0000000000000001"


@pytest.mark.parametrize(
    ("fate", "loose", "again", "wanted"),
    [
        (Fate.LOST, False, False, Step.AGAIN),
        (Fate.LOST, True, False, Step.AGAIN),
        (Fate.LATER, False, False, Step.AGAIN),
        (Fate.LATER, True, False, Step.AGAIN),
        (Fate.STRANGE, False, False, Step.NEW_LANE),
        (Fate.STRANGE, True, False, Step.GIVE_UP),
        (Fate.STRANGE, True, True, Step.NEW_LANE),
        (Fate.FINAL, False, False, Step.REFUSE),
        (Fate.FINAL, True, False, Step.GIVE_UP),
    ],
)
def test_what_follows_an_attempt_depends_on_copies_that_are_unaccounted_for(
    fate: Fate, loose: bool, again: bool, wanted: Step
) -> None:
    trip = a_trip(loose=loose, again=again)

    assert trip.step(fate, now=100.1, retry_for=5) is wanted


def test_a_lane_that_rested_too_long_is_replaced_once_however_little_time_there_is() -> None:
    trip = a_trip()

    first = trip.step(Fate.STRANGE, now=100.1, retry_for=0)
    trip.pause(100.1, luck=1.0)
    second = trip.step(Fate.STRANGE, now=100.2, retry_for=0)

    assert [first, second] == [Step.NEW_LANE, Step.GIVE_UP]


def test_a_refusal_of_a_read_is_final_though_an_earlier_copy_was_lost() -> None:
    trip = a_trip(laned=False, loose=True)

    assert trip.step(Fate.FINAL, now=100.1, retry_for=5) is Step.REFUSE


def test_a_copy_that_went_out_and_was_lost_may_have_taken_effect() -> None:
    trip = a_trip()
    trip.out = True

    trip.step(Fate.LOST, now=100.1, retry_for=5)

    assert trip.maybe_done
    assert trip.loose
    assert not trip.out


def test_a_call_that_never_went_out_cannot_have_taken_effect() -> None:
    trip = a_trip()

    trip.step(Fate.LOST, now=100.1, retry_for=5)

    assert not trip.maybe_done


def test_a_call_is_said_again_for_so_long_after_its_first_trouble() -> None:
    trip = a_trip()

    steps = [trip.step(Fate.LOST, now, retry_for=5) for now in (110.0, 114.9, 115.0)]

    assert steps == [Step.AGAIN, Step.AGAIN, Step.GIVE_UP]


def test_a_machine_that_slept_does_not_say_a_call_again_after_ten_minutes() -> None:
    trip = a_trip()

    assert trip.step(Fate.LOST, now=100.0 + LONGEST, retry_for=600) is Step.GIVE_UP


def test_pauses_grow_from_none_and_end_with_the_time_there_is() -> None:
    trip = a_trip()
    trip.step(Fate.LOST, now=100.0, retry_for=5)

    pauses = [trip.pause(100.0, luck=1.0) for _ in range(6)]

    assert pauses == [0.0, 0.05, 0.1, 0.2, 0.4, 0.4]
    assert trip.pause(104.9, luck=1.0) == pytest.approx(0.1)
    assert trip.pause(200.0, luck=1.0) == 0.0


def test_luck_makes_a_pause_up_to_half_as_long() -> None:
    trip = a_trip()
    trip.tries = 4

    assert trip.pause(100.0, luck=0.0) == pytest.approx(0.2)


def test_a_lane_that_is_left_leaves_its_doubt_behind() -> None:
    trip = a_trip(loose=True, again=True)

    trip.leave_lane()

    assert trip.lane is None
    assert trip.maybe_done
    assert not trip.loose


def test_a_lane_nobody_knows_any_more_needs_no_fence_and_cannot_be_asked() -> None:
    trip = a_trip(loose=True)

    trip.step(Fate.STRANGE, now=100.1, retry_for=5)

    assert trip.lane is None
    assert trip.maybe_done


def test_a_fence_is_the_next_call_of_the_lane_and_asks_for_the_one_before() -> None:
    lane = Lane("host:1:1700000000:abc")
    trip = Trip(Call(Script("add", "", ""), ("skep:{mail}",), (), bytes), began=100.0)
    trip.enter(lane)

    given = GivenUp(trip, lane, FENCE)
    first, second = given.ask(101.0), given.ask(102.0)

    assert given.fence.args == ("0000000000000001",)
    assert first.said == second.said == "host:1:1700000000:abc 0000000000000002"
    assert lane.number == 2


def test_of_a_fence_nobody_says_that_nothing_was_done() -> None:
    trip = a_trip()
    assert trip.lane is not None

    fence = GivenUp(trip, trip.lane, FENCE).ask(101.0)

    assert fence.maybe_done
