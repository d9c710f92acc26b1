"""The options of a fetch that are objects. The specification explains their members; credentials are those of `answers`."""
from typing import Dict, List, Literal, Sequence, Tuple, TypedDict, Union

from .answers import Certificate, Header, Password, Token, Trust
from .messages import AuthenticationMethod

LoginCredential = Union[Password, Token, Header]
#: Pairs of name and value, or a dictionary.
HeaderFields = Union[Dict[str, str], Sequence[Tuple[str, str]], Sequence[List[str]]]


class HandlerOptions(TypedDict, total=False):
    methods: Sequence[AuthenticationMethod]
    mode: Literal["classic", "everything"]


class AuthOptions(TypedDict, total=False):
    interaction: Literal["self", "agent", "none"]
    useStorage: bool
    preemptive: Union[bool, Literal["always"]]
    methods: Sequence[AuthenticationMethod]
    proxyMethods: Sequence[AuthenticationMethod]
    handler: HandlerOptions


class _ProxyOptions(TypedDict, total=False):
    credential: LoginCredential


class ProxyOptions(_ProxyOptions):
    url: str


class TLSOptions(TypedDict, total=False):
    trust: Literal["onFailure", "always"]
    certificate: Certificate
    pin: Trust


class LowSpeed(TypedDict):
    bytesPerSecond: int
    seconds: int


class RedirectOptions(TypedDict, total=False):
    keepMethod: bool
    keepPost: Sequence[Literal[301, 302, 303]]
    schemes: Sequence[Literal["http", "https"]]


Proxy = Union[ProxyOptions, Literal["none"]]
