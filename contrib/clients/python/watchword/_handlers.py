"""The challenge handlers of a connection: one for all fetches, and further ones for single fetches."""
from typing import Any, Dict, Generic, Optional, TypeVar

T = TypeVar("T")


class Handlers(Generic[T]):
    def __init__(self, of_all: Optional[T]):
        self.of_all = of_all
        self._of_request: Dict[int, T] = {}
        # The numbers of the requests that began a fetch in steps, by fetch id.
        self._requests: Dict[str, int] = {}

    def take(self, number: int, params: Dict[str, Any]) -> Dict[str, Any]:
        """Removes and registers `handler` from the parameters of request `number`; returns the parameters for the broker."""
        handler = params.pop("handler", None)
        if handler is None:
            return params
        self._of_request[number] = handler
        auth = params.get("auth") or {}
        # This client does not support the delivery `notification` (`auth/pending`).
        return {**params, "auth": {**auth, "handler": {**(auth.get("handler") or {}), "delivery": "request"}}}

    def end(self, number: int, result: Any = None) -> None:
        """Removes the handler of request `number` after the reply, unless the request began a fetch in steps."""
        if isinstance(result, dict) and "attachToken" in result and number in self._of_request:
            self._requests[result["fetchId"]] = number
        elif number in self._of_request:
            del self._of_request[number]

    def complete(self, fetch: str) -> None:
        self.end(self._requests.pop(fetch, 0))

    def of(self, challenge: Dict[str, Any]) -> Optional[T]:
        """Returns the handler of a challenge, or `None`. Raises `LookupError` if the client has already ended its fetch."""
        return self._of_request[challenge["requestId"]] if challenge.get("handler") == "fetch" else self.of_all
