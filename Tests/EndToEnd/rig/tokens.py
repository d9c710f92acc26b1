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


def rounds_server(rounds, scheme="Hoba", body=b"after all rounds\n"):
    """A scheme in several rounds. `rounds` are pairs of the challenge after the scheme's name, and its answer. Any other request gets the
    first challenge."""
    turn = 0

    def handle(request):
        nonlocal turn
        is_answer = [request.authorization == f"{scheme} {rounds[number][1]}" for number in (turn, 0)]
        turn = turn + 1 if is_answer[0] else 1 if is_answer[1] else 0
        if turn == len(rounds):
            turn = 0
            return response(200, body)
        return response(401, b"please log in", f"WWW-Authenticate: {scheme} {rounds[turn][0]}")

    return ScriptedServer(handle)
