"""When a cron line is due next, on the clocks of a time zone. Pure: same arguments, same answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from skep.errors import InvalidOption

EXAMPLE = "five fields: minute, hour, day, month, weekday, such as '0 9 * * mon-fri'"
ZONE_EXAMPLE = "the name of a time zone, such as 'Europe/Paris'"
EVERY_HOUR = set(range(24))


def check_cron(cron: object, tz: object = "UTC") -> None:
    """Refuses, with an example, a line or a time zone that there is not, and a line that is never due."""
    zone = _zone(tz)
    if not isinstance(cron, str) or len(cron.split()) != 5:
        raise InvalidOption("cron", cron, EXAMPLE)
    try:
        next(CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC).astimezone(zone)))
    except CronSimError as error:
        raise InvalidOption("cron", cron, f"{EXAMPLE} ({str(error).lower()})") from None
    except StopIteration:
        raise InvalidOption("cron", cron, f"{EXAMPLE}; this one is never due") from None


def next_due(cron: str, tz: str, after_ms: int) -> int:
    """The first due time behind `after_ms`.

    One that the clock skips is due at the first instant after the gap, one that it shows twice only at the
    first of the two. A line that names every hour is due in every hour that passes.
    """
    zone = _zone(tz)
    after = datetime.fromtimestamp(after_ms // 1000, zone)
    line = CronSim(cron, after.replace(tzinfo=None))
    if line.hours == EVERY_HOUR:
        fields = cron.split()
        return _ms(next(CronSim(" ".join((fields[0], "*", *fields[2:])), after)))
    return next(due for due in (_first_instant(local, zone) for local in line) if due > after_ms)


def _first_instant(local: datetime, zone: ZoneInfo) -> int:
    early = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == local:
        return _ms(early)
    return _ms(_end_of_gap(local.replace(tzinfo=zone, fold=1).astimezone(UTC), early, zone))


def _end_of_gap(before: datetime, behind: datetime, zone: ZoneInfo) -> datetime:
    """The instant, to the second, at which the clock was set forward between these two."""
    was = before.astimezone(zone).utcoffset()
    while behind - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(behind - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == was:
            before = middle
        else:
            behind = middle
    return behind


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _zone(tz: object) -> ZoneInfo:
    try:
        if isinstance(tz, str) and tz:
            return ZoneInfo(tz)
    except (OSError, ValueError, KeyError):
        pass  # names of no zone fail in all of these ways; they are refused together
    raise InvalidOption("tz", tz, ZONE_EXAMPLE)
