"""Who answers the challenges of a connection: one function for all fetches, and others for single ones."""
from typing import Any, Dict, Generic, Optional, TypeVar

T = TypeVar("T")


class Handlers(Generic[T]):
    def __init__(self, of_all: Optional[T]):
        self.of_all = of_all
        self._of_request: Dict[int, T] = {}
        # Requests that have begun a fetch in steps, by its name.
        self._requests: Dict[str, int] = {}

    def take(self, number: int, params: Dict[str, Any]) -> Dict[str, Any]:
        """Keeps the `handler` among the parameters of request `number`; returns those that the broker gets."""
        handler = params.pop("handler", None)
        if handler is None:
            return params
        self._of_request[number] = handler
        auth = params.get("auth") or {}
        # `auth/pending` is not heard here.
        return {**params, "auth": {**auth, "handler": {**(auth.get("handler") or {}), "delivery": "request"}}}

    def end(self, number: int, result: Any = None) -> None:
        """The request has its reply: only a fetch that it has begun in steps goes on."""
        if isinstance(result, dict) and "attachToken" in result and number in self._of_request:
            self._requests[result["fetchId"]] = number
        elif number in self._of_request:
            del self._of_request[number]

    def complete(self, fetch: str) -> None:
        self.end(self._requests.pop(fetch, 0))

    def of(self, challenge: Dict[str, Any]) -> Optional[T]:
        """Raises `LookupError` for a fetch that nobody here waits for any more."""
        return self._of_request[challenge["requestId"]] if challenge.get("handler") == "fetch" else self.of_all
