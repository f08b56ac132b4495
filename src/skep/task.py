"""Functions as tasks: called from anywhere, run by a worker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar, Unpack, cast, overload

from skep import adding, ajob, job
from skep.adding import Added, Shaped, Shaper
from skep.ajob import AsyncJob
from skep.core.call import Flow
from skep.core.codec import decode, encode, encode_many
from skep.core.limits import unique_id
from skep.core.options import AddOptions
from skep.declaring import HandlerOptions, declare_failure_handler, decorator
from skep.drafts import add_time
from skep.errors import InvalidOption
from skep.handler import TaskHandler
from skep.job import Job
from skep.link import Link

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

Arguments: TypeAlias = tuple[Any, ...] | Mapping[str, Any]
"""A call of a task: positional arguments, or named ones."""


class BaseTask(Generic[P, R]):
    """A function that a queue runs elsewhere, and what is said of its jobs."""

    def __init__(self, link: Link, handler: TaskHandler, of_queue: Shaper, shaper: Shaper | None = None) -> None:
        update_wrapper(cast(Any, self), handler.function, updated=())
        self._link = link
        self._handler = handler
        self._of_queue = of_queue
        layers = (add_time(handler.options.terms), *of_queue.layers)
        self._shaper = shaper or Shaper(({"task": handler.name}, *layers), of_queue.max_payload)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of queue {self._link.keys.name!r}>"

    @property
    def name(self) -> str:
        """What its jobs call it: `job.task`."""
        return self._handler.name

    def options(self, **options: Unpack[AddOptions]) -> Self:
        """The same task, where so much is said of its next jobs: `task.options(delay=60).enqueue(...)`."""
        if "task" in options:
            raise InvalidOption("task", options["task"], "no value here: it is this task")
        return type(self)(self._link, self._handler, self._of_queue, self._shaper.saying(options))

    @overload
    def on_failure(self, function: F, /) -> F: ...
    @overload
    def on_failure(self, function: None = None, /, **options: Unpack[HandlerOptions]) -> Callable[[F], F]: ...
    def on_failure(self, function: Any = None, /, **options: Unpack[HandlerOptions]) -> Any:
        """Makes `def f(job, error)` the failure handler of this task: called for each job that fails for good."""

        def declare(function: F, options: Mapping[str, Any]) -> F:
            declare_failure_handler(self._link, self.name, function, options)
            return function

        return decorator(declare, function, options)

    def _shaped(self, bound: Mapping[str, Any], text: bytes) -> Shaped:
        template, handler = self._shaper.template, self._handler
        if not handler.unique or template.id is not None:
            return template, text
        arguments = decode(encode(handler.parameters.with_defaults(bound), limit=self._shaper.max_payload))
        named = handler.unique if isinstance(handler.unique, tuple) else None
        return template.unique(unique_id(self.name, arguments, named), handler.window), text

    def _one(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Shaped:
        bound = self._handler.parameters.bind(args, kwargs)
        return self._shaped(bound, encode(bound, limit=self._shaper.max_payload))

    def _bound(self, item: Arguments, place: int) -> dict[str, Any]:
        bind = self._handler.parameters.bind
        try:
            return bind((), item) if isinstance(item, Mapping) else bind(tuple(item), {})
        except TypeError as error:
            error.add_note(f"in items[{place}] of enqueue_many")
            raise

    def _prepare(self, batch: list[Any], first: int) -> list[bytes] | list[Shaped]:
        bound = [self._bound(item, place) for place, item in enumerate(batch, first)]
        texts = encode_many(bound, first, self._shaper.max_payload)
        if not self._handler.unique:
            return self._shaper.alike(texts)
        return [self._shaped(each, text) for each, text in zip(bound, texts, strict=True)]

    def _many(self, items: Iterable[Arguments], *, ids: bool) -> Flow[Added]:
        return adding.add_many(self._link.keys, self._shaper.template, self._prepare, items, ids=ids)


class Task(BaseTask[P, R]):
    """A function of a `Queue`. Called it runs here; `enqueue` has a worker run it."""

    _TWIN = "await task.a{}(...), or a task of queue.aio"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        result: R = self._handler.function(*args, **kwargs)
        return result

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """A job that calls it with these arguments; a wrong call is a `TypeError` here and now."""
        return job.add(self._link, *self._one(args, kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob[R]:
        """The same for asynchronous code."""
        return await ajob.add(self._link.aio, *self._one(args, kwargs))

    def enqueue_many(self, items: Iterable[Arguments], *, ids: bool = False) -> Added:
        """A job for each item, a tuple of positional or a mapping of named arguments; see `Queue.add_many`."""
        return self._link.run(self._many(items, ids=ids))


class CoroutineTask(Task[P, R]):
    """The same of an `async def`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] # its result is what is awaited
        """The function itself."""
        result: Coroutine[Any, Any, R] = self._handler.function(*args, **kwargs)
        return result


class AsyncTask(BaseTask[P, R]):
    """A function of an `AsyncQueue`. Called it runs here; `await enqueue` has a worker run it."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        result: R = self._handler.function(*args, **kwargs)
        return result

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob[R]:
        """A job that calls it with these arguments; a wrong call is a `TypeError` here and now."""
        return await ajob.add(self._link.aio, *self._one(args, kwargs))

    async def enqueue_many(self, items: Iterable[Arguments], *, ids: bool = False) -> Added:
        """A job for each item, a tuple of positional or a mapping of named arguments; see `AsyncQueue.add_many`."""
        return await self._link.aio.run(self._many(items, ids=ids))


class AsyncCoroutineTask(AsyncTask[P, R]):
    """The same of an `async def`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] # its result is what is awaited
        """The function itself."""
        result: Coroutine[Any, Any, R] = self._handler.function(*args, **kwargs)
        return result


class TaskMaker(Protocol):
    """Makes a function a task of a `Queue`."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> CoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class AsyncTaskMaker(Protocol):
    """Makes a function a task of an `AsyncQueue`."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncCoroutineTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> AsyncTask[P, R]: ...
