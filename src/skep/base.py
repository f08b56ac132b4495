"""What a queue is before anything is sent: its name, options and handlers, the same for both kinds of queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar, Unpack, overload

from skep.adding import Shaper
from skep.core.keys import Keys
from skep.core.limits import MAX_PAYLOAD, check_queue_name
from skep.core.options import AddOptions, JobOptions
from skep.core.settings import Retention, Setting, SettingOptions, told
from skep.core.terms import Priority
from skep.core.unset import UNSET, Unset
from skep.declaring import HandlerOptions, declare_failure_handler, declare_handler, decorator
from skep.drafts import add_time, from_the_run_on
from skep.errors import InvalidOption
from skep.handler import Registry
from skep.link import Link
from skep.listeners import Decorator, EventHandler
from skep.store.connect import Connection
from skep.store.transport import Clock

F = TypeVar("F", bound=Callable[..., Any])


class BaseQueue:
    """A queue of jobs. Making one touches nothing: the first call connects.

    name          1 to 200 characters without braces or control characters
    url           where its server is, or a `Connection` to share; None: `SKEP_URL`, else an embedded server
    prefix        what all its keys begin with
    defaults      what is said of its jobs where neither the call nor the task says it
    retention     how long finished jobs are kept
    priority      of the queue, among others of one worker
    max_payload   the largest data of a job, in bytes

    Retention, the settings named here (`max_waiting` and others, see `Settings`) and those of the defaults that matter
    from a run on live in the server: a worker writes them when it starts, `configure` at once.
    """

    def __init__(
        self,
        name: str,
        url: str | Connection | None = None,
        *,
        prefix: str = "skep",
        defaults: JobOptions | None = None,
        retention: Retention | Unset = UNSET,
        priority: Priority | int | str = "normal",
        max_payload: int = MAX_PAYLOAD,
        clock: Clock | None = None,
        **settings: Unpack[SettingOptions],
    ) -> None:
        self.name = check_queue_name(name)
        self.keys = Keys(self.name, check_queue_name(prefix, "prefix"))
        connection = url if isinstance(url, Connection) else Connection(url)
        self.defaults = defaults or JobOptions()
        for option in ("id", "run_at"):
            if getattr(self.defaults, option) is not UNSET:
                raise InvalidOption(option, getattr(self.defaults, option), "no value among the defaults of a queue")
        self.priority = Priority.of(priority)
        self._settings = told(retention, settings)
        self._said = {"max_payload": max_payload, "retention": retention, "clock": clock, **settings}
        self._shaper = Shaper((add_time(self.defaults.terms),), max_payload)
        self._blocking = Link(self.keys, connection, Registry(name), clock)

    @property
    def connection(self) -> Connection:
        """Where its server is, and how long it is waited for."""
        return self._blocking.open_connection()

    @property
    def registry(self) -> Registry:
        """Its handlers in this process."""
        return self._blocking.registry

    @property
    def key_prefix(self) -> str:
        """What all its keys begin with."""
        return self.keys.base

    @property
    def settings_in_code(self) -> Mapping[str, Setting | bytes]:
        """What a worker writes into the server's settings when it starts: what is named here, and not the rest."""
        defaults = {name: value for name, value in from_the_run_on(self.defaults.terms).items() if name != "keep"}
        return self._settings | {name: "" if value is False else value for name, value in defaults.items()}

    def options(self, **options: Unpack[AddOptions]) -> Self:
        """The same queue, where so much is said of the jobs added: `queue.options(retries=0).add(...)`."""
        return self._with(self._shaper.saying(options))

    def _with(self, shaper: Shaper) -> Self:
        """The same queue for callers, with all that is open shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _shaper=shaper)
        return twin

    @overload
    def handler(self, function: F, /) -> F: ...
    @overload
    def handler(self, function: None = None, /, **options: Unpack[HandlerOptions]) -> Callable[[F], F]: ...
    def handler(self, function: Any = None, /, **options: Unpack[HandlerOptions]) -> Any:
        """Makes `def f(job)` the handler of all jobs without a task."""

        def declare(function: F, options: Mapping[str, Any]) -> F:
            declare_handler(self.registry, function, options)
            return function

        return decorator(declare, function, options)

    @overload
    def on_failure(self, function: F, /) -> F: ...
    @overload
    def on_failure(self, function: None = None, /, **options: Unpack[HandlerOptions]) -> Callable[[F], F]: ...
    def on_failure(self, function: Any = None, /, **options: Unpack[HandlerOptions]) -> Any:
        """Makes `def f(job, error)` the failure handler of all jobs whose task has none of its own."""

        def declare(function: F, options: Mapping[str, Any]) -> F:
            declare_failure_handler(self._blocking, "", function, options)
            return function

        return decorator(declare, function, options)

    def lifespan(self, function: F) -> F:
        """Makes a context manager, async or plain, that each process of a worker enters: `skep.current_job().state`."""
        self.registry.lifespan = function
        return function

    @overload
    def on(self, type: str, function: EventHandler, /) -> EventHandler: ...
    @overload
    def on(self, type: str, function: None = None, /) -> Decorator: ...
    def on(self, type: str, function: EventHandler | None = None, /) -> Any:
        """Has `def f(event)` told of all events of a type, while `listen` runs: `@queue.on("failed")`."""
        return self._blocking.listeners.add(type, function)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._blocking.connection.safe_url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # By name and url: handlers are functions, which those who unpickle it have or have not.
        said = {"prefix": self.keys.prefix, "defaults": self.defaults, "priority": self.priority, **self._said}
        return _made_again, (type(self), self.name, self._blocking.connection, said)


def _made_again(kind: type[BaseQueue], name: str, connection: Connection, said: dict[str, Any]) -> BaseQueue:
    return kind(name, connection, **said)
