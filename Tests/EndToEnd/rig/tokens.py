"""Scripted servers for token schemes: Bearer, and an unknown one."""
from .scripted import ScriptedServer, response


def bearer_server(token, realm="api", scope=None, body=b"for the bearer\n"):
    """RFC 6750: a plain challenge without a token, invalid_token for a wrong one, and insufficient_scope at /wider."""
    about = f'Bearer realm="{realm}"' + (f', scope="{scope}"' if scope else "")

    def handle(request):
        said = request.authorization
        if said is None:
            return response(401, b"please log in", f"WWW-Authenticate: {about}")
        if said != f"Bearer {token}":
            return response(
                401, b"no", f'WWW-Authenticate: {about}, error="invalid_token", error_description="The access token expired"')
        if request.target.startswith("/wider"):
            return response(403, b"not you", f'WWW-Authenticate: Bearer realm="{realm}", error="insufficient_scope", scope="admin"')
        return response(200, body)

    return ScriptedServer(handle)


def rounds_server(rounds, scheme="Hoba", ending=None, proxy=False, bound=False, body=b"after all rounds\n"):
    """A scheme in several rounds. `rounds` are pairs of the challenge after the scheme's name, and its answer.

    Any other request gets the first challenge. `ending` is sent in Authentication-Info with the body. With `bound`, a round
    counts only for its connection, as in NTLM.
    """
    asks, answers, ends = [("WWW-Authenticate", "Authorization", "Authentication-Info"),
                           ("Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info")][proxy]
    turns = {}

    def handle(request):
        key = request.connection if bound else None
        turn = turns.pop(key, 0)
        said = request.header(answers)
        turn = turn + 1 if said == f"{scheme} {rounds[turn][1]}" else 1 if said == f"{scheme} {rounds[0][1]}" else 0
        if turn == len(rounds):
            return response(200, body, *([f"{ends}: {ending}"] if ending else []))
        turns[key] = turn
        return response(407 if proxy else 401, b"please log in", f"{asks}: {scheme} {rounds[turn][0]}")

    return ScriptedServer(handle)
