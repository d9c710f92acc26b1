"""A person's browser, without a display: follows redirects, and keeps cookies."""
import contextlib
import dataclasses
import http.client
import pwd
import ssl
import subprocess
import urllib.parse

from .servers import find

REDIRECTS = (301, 302, 303, 307, 308)


@dataclasses.dataclass
class Page:
    """The end of a visit."""
    url: str
    status: int
    headers: list
    body: bytes

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def location(self):
        target = self.header("Location")
        return urllib.parse.urljoin(self.url, target) if target is not None else None


def request(url, method="GET", headers=None, body=None, host=None, authority=None):
    """Makes one request without following redirects; returns the page. `headers` is a dictionary, or a
    list of pairs; `host` replaces the field Host; `authority` is the file of a certificate authority to trust."""
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname in ("127.0.0.1", "localhost", "::1"), f"{url} is not on this machine"
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.netloc, timeout=60, context=ssl.create_default_context(cafile=authority))
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest(method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", parts.netloc if host is None else host)
        for name, value in headers.items() if isinstance(headers, dict) else headers or ():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Page(url, answer.status, answer.getheaders(), answer.read())


def visit(url, jar=None, authority=None):
    """Opens a page like a browser, without following a redirect. `jar` maps (host, name) to the value of a cookie; ports share
    cookies (RFC 6265 section 8.5)."""
    jar = {} if jar is None else jar
    host = urllib.parse.urlsplit(url).hostname
    cookies = "; ".join(f"{name}={value}" for (owner, name), value in jar.items() if owner == host)
    headers = {"User-Agent": "browser", "Accept": "text/html", **({"Cookie": cookies} if cookies else {})}
    page = request(url, headers=headers, authority=authority)
    keep_cookies(page, jar)
    return page


def keep_cookies(page, jar):
    for name, value in page.headers:
        if name.lower() == "set-cookie":
            key, _, content = value.partition(";")[0].partition("=")
            jar[urllib.parse.urlsplit(page.url).hostname, key.strip()] = content.strip()


def open_login(url, jar=None, authority=None, until=lambda url: False, limit=10):
    """Opens `url` and follows its redirects, up to one whose target fulfils `until`; returns the last page."""
    jar = {} if jar is None else jar
    for _ in range(limit):
        page = visit(url, jar, authority)
        if page.status not in REDIRECTS or page.location is None or until(page.location):
            return page
        url = page.location
    raise AssertionError(f"too many redirects, up to {url}")


class Redirect:
    """The redirect back to the program, not yet followed. `parameters` are those of its query, in order."""

    def __init__(self, url):
        self.url = url
        self.parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query, keep_blank_values=True))

    def altered(self, **changes):
        """Returns a redirect with other parameters; None removes one."""
        parameters = {name: value for name, value in {**self.parameters, **changes}.items() if value is not None}
        return Redirect(urllib.parse.urlsplit(self.url)._replace(query=urllib.parse.urlencode(parameters)).geturl())

    def at(self, path):
        return Redirect(urllib.parse.urlsplit(self.url)._replace(path=path).geturl())

    def follow(self, **more):
        """Returns the program's answer. `more` are arguments of `request`, such as `host`, `method` and `headers`."""
        return request(self.url, **more)


def hold_redirect(url):
    """Logs in like `open_login`, but returns the redirect back to the program without following it."""
    def returns(target):
        """Whether a URL looks like the end of a login: the page that the program opens does not show the redirect URI."""
        names = {name for name, _ in urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query)}
        return "redirect_uri" not in names and bool(names & {"code", "error"})

    page = open_login(url, until=returns)
    assert page.location is not None, f"{page.url} answered {page.status} {page.body[:200]!r}"
    return Redirect(page.location)


def request_as(user, url):
    """Makes a request as another user of the machine, which only root can do; returns its status, or None without a response."""
    account = pwd.getpwnam(user)
    done = subprocess.run(
        [find("curl"), "-q", "-s", "-m", "10", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", url],
        capture_output=True, text=True, timeout=60, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/", env={})
    return int(done.stdout) or None


def quietly(action):
    """Does what may fail because the broker has ended the login."""
    with contextlib.suppress(OSError):
        action()
