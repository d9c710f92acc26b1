"""The functions of PAC files, as the evaluator defines them, and the limits of its process."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from rig.broker import program
from rig.upstreams import Evaluator

# Evaluates the host as an expression, at a time in seconds since 1970 if it begins with one.
CALCULATOR = """
var RealDate = Date, now = 0;
Date = function () { return new RealDate(now * 1000); };
function FindProxyForURL(url, host) {
    var parts = /^@(-?[0-9]+) (.*)$/.exec(host);
    if (parts) now = Number(parts[1]);
    return String(eval(parts ? parts[2] : host));
}
"""


@pytest.fixture
def evaluator():
    """Starts processes, which end with the test."""
    started = []

    def start(script=CALCULATOR, **more):
        started.append(Evaluator(script, **more))
        return started[-1]

    yield start
    for one in started:
        one.close()


NAMES = {
    "isPlainHostName('www')": "true", "isPlainHostName('www.a.test')": "false", "isPlainHostName('::1')": "false",
    "dnsDomainIs('www.a.test', '.a.test')": "true", "dnsDomainIs('WWW.A.TEST', '.a.test')": "true",
    "dnsDomainIs('www', '.a.test')": "false", "dnsDomainIs('a.test', 'www.a.test')": "false",
    "localHostOrDomainIs('www.a.test', 'www.a.test')": "true", "localHostOrDomainIs('www', 'www.a.test')": "true",
    "localHostOrDomainIs('www.b.test', 'www.a.test')": "false", "localHostOrDomainIs('ww', 'www.a.test')": "false",
    "dnsDomainLevels('www')": "0", "dnsDomainLevels('www.a.test')": "2",
    "shExpMatch('http://a.test/x/y', '*/x/*')": "true", "shExpMatch('a.test', '*.test')": "true",
    "shExpMatch('a.test', '?.test')": "true", "shExpMatch('ab.test', '?.test')": "false", "shExpMatch('atest', 'a.test')": "false",
    "shExpMatch('x', '*')": "true",
    # A regular expression, apart from the dot, the star and the question mark, as in browsers.
    "shExpMatch('a.example', '(*.a.example|a.example)')": "true", "shExpMatch('x.a.example', '(*.a.example|a.example)')": "true",
    "shExpMatch('xa.example', '(*.a.example|a.example)')": "false", "shExpMatch('b1', '[a-c]?')": "true", "shExpMatch('d1', '[a-c]?')": "false",
    "shExpMatch('aab', 'a+b')": "true", "shExpMatch('ab', 'a|b')": "true", "shExpMatch('a.b', 'a.b')": "true",
    "isValidIpAddress('192.0.2.1')": "true", "isValidIpAddress('192.0.2.256')": "false", "isValidIpAddress('192.0.2')": "false",
    "isValidIpAddress('::1')": "false", "isValidIpAddress('a.example')": "false",
}
ADDRESSES = {
    "dnsResolve('127.0.0.1')": "127.0.0.1", "dnsResolve('localhost')": "127.0.0.1", "dnsResolve('name.invalid')": "null",
    "dnsResolve('')": "null", "dnsResolve('*')": "null", "dnsResolve(new Array(400).join('x'))": "null",
    "isResolvable('localhost')": "true", "isResolvable('name.invalid')": "false", "dnsResolveEx('::1')": "::1",
    "dnsResolveEx('name.invalid')": "", "isResolvableEx('::1')": "true",
    "convert_addr('104.16.41.2')": "1745889538", "convert_addr('x')": "0",
    "isInNet('10.1.2.3', '10.1.0.0', '255.255.0.0')": "true", "isInNet('10.2.2.3', '10.1.0.0', '255.255.0.0')": "false",
    "isInNet('localhost', '127.0.0.0', '255.0.0.0')": "true", "isInNet('name.invalid', '127.0.0.0', '255.0.0.0')": "false",
    "isInNet('192.168.1.1', '192.168.1.1', '255.255.255.255')": "true", "isInNet('1.2.3.4', '0.0.0.0', '0.0.0.0')": "true",
    "isInNet('::1', '127.0.0.0', '255.0.0.0')": "false", "isInNet('10.1.2.3', 'x', '255.0.0.0')": "false",
    "isInNetEx('2001:db8::5', '2001:db8::/32')": "true", "isInNetEx('2001:db9::5', '2001:db8::/32')": "false",
    "isInNetEx('10.1.2.3', '10.0.0.0/8')": "true", "isInNetEx('10.1.2.3', '10.0.0.0/40')": "false",
    "isInNetEx('localhost', '127.0.0.0/8')": "true", "isInNetEx('10.1.2.3', '10.0.0.0')": "false",
    "sortIpAddressList('10.2.3.9;2001:db8::2;10.2.3.1;2001:db8::1')": "2001:db8::1;2001:db8::2;10.2.3.1;10.2.3.9",
    "sortIpAddressList('x')": "false", "/^[0-9.]+$/.test(myIpAddress())": "true",
    "myIpAddressEx().split(';').every(function (a) { return a === '' || isResolvableEx(a); })": "true",
}
# 1700000000 is Tuesday, 14 November 2023, 22:13:20 UTC.
AT = "@1700000000 "
TIMES = {
    "weekdayRange('TUE')": True, "weekdayRange('MON', 'FRI')": True, "weekdayRange('WED', 'MON')": False,
    "weekdayRange('SAT', 'TUE')": True, "weekdayRange('TUE', 'GMT')": True, "weekdayRange('XYZ')": False, "weekdayRange()": False,
    "dateRange(14)": True, "dateRange(15)": False, "dateRange(1, 14)": True, "dateRange(20, 15)": True, "dateRange('NOV')": True,
    "dateRange('NOV', 'MAR')": True, "dateRange('DEC', 'MAR')": False, "dateRange('MAY', 'OCT')": False, "dateRange(2023)": True,
    "dateRange(2024)": False, "dateRange(2020, 2023)": True, "dateRange(1, 'NOV', 14, 'NOV')": True,
    "dateRange(15, 'NOV', 13, 'NOV')": False, "dateRange(20, 'DEC', 15, 'NOV')": True, "dateRange('OCT', 2023, 'NOV', 2023)": True,
    "dateRange(14, 'NOV', 2023, 14, 'NOV', 2023)": True, "dateRange(15, 'NOV', 2023, 1, 'JAN', 2024)": False,
    "dateRange(14, 'GMT')": True, "dateRange('XXX')": False, "dateRange(1, 2, 3)": False, "dateRange(1, 'NOV')": False,
    "timeRange(22)": True, "timeRange(21)": False, "timeRange(9, 22)": True, "timeRange(9, 21)": False, "timeRange(20, 4)": True,
    "timeRange(22, 13, 22, 13)": True, "timeRange(22, 14, 22, 20)": False, "timeRange(22, 13, 20, 22, 13, 20)": True,
    "timeRange(22, 13, 21, 22, 14, 0)": False, "timeRange(22, 'GMT')": True, "timeRange('x')": False, "timeRange(1, 2, 3)": False,
}


def test_the_functions_for_names_and_addresses(evaluator):
    one = evaluator()
    assert one.loaded == "ok "
    found = {expression: one.find(host=expression) for expression in [*NAMES, *ADDRESSES]}
    assert found == {expression: f"ok {result}" for expression, result in [*NAMES.items(), *ADDRESSES.items()]}


def test_the_functions_for_dates_and_times(evaluator):
    one = evaluator()
    found = {expression: one.find(host=AT + expression) for expression in TIMES}
    assert found == {expression: f"ok {str(result).lower()}" for expression, result in TIMES.items()}


def test_local_times_are_those_of_the_time_zone(evaluator):
    one = evaluator(environment={"TZ": "Asia/Tokyo"})
    # Wednesday, 07:13:20 in Tokyo.
    expected = {"timeRange(7)": "true", "timeRange(22)": "false", "timeRange(22, 'GMT')": "true", "weekdayRange('WED')": "true",
                "weekdayRange('TUE', 'GMT')": "true", "dateRange(15)": "true"}
    assert {expression: one.find(host=AT + expression) for expression in expected} == {
        expression: f"ok {result}" for expression, result in expected.items()}


def test_a_script_with_the_other_function_only(evaluator):
    one = evaluator("function FindProxyForURLEx(url, host) { return 'PROXY ' + host; }")
    assert one.find() == "ok PROXY h.test"


def test_results_and_errors_are_one_line(evaluator):
    one = evaluator("function FindProxyForURL(url, host) { if (host === 'a') throw 'x\\ny'; return host === 'b' ? 'x\\u0000y' : 'x\\r\\ny' + new Array(Number(host)).join('w'); }")
    assert one.find(host="a") == "error x y"
    assert one.find(host=1) == "ok x  y" and one.find(host="a") == "error x y"
    # A text that is cut off would name another proxy.
    assert one.find(host=4092) == "ok x  y" + 4091 * "w"
    for host in [4093, "b"]:
        assert one.find(host=host).startswith("error FindProxyForURL returned more than 4095 bytes or a zero character")


def test_a_getter_of_the_function_runs_protected(evaluator):
    one = evaluator("var n = 0; Object.defineProperty(this, 'FindProxyForURL', {get: function () {"
                    " if (n++ % 2) throw 'no'; return function () { return 'DIRECT'; }; }})")
    assert one.loaded == "ok "
    assert [one.find(), one.find()] == ["error no", "ok DIRECT"]


def test_a_file_without_the_function_cannot_be_loaded(evaluator):
    for script, problem in [("<html></html>", "SyntaxError"), ("", "does not define the function"), ("var FindProxyForURL = 1;", "does not define")]:
        one = evaluator(script)
        assert one.loaded.startswith("error ") and problem in one.loaded
        assert one.find() == "error no script is loaded"


def test_the_memory_of_a_script_is_limited(evaluator):
    one = evaluator("function FindProxyForURL(url, host) { for (var s = 'x'; s.length < host;) s += s; return '' + s.length; }")
    assert one.find(host=1 << 20) == f"ok {1 << 20}"
    assert one.find(host=1 << 25).startswith("error ")
    assert one.find(host=1 << 20) == f"ok {1 << 20}"


def test_a_script_has_no_way_out(evaluator):
    one = evaluator()
    for name in ["require", "process", "Duktape.modSearch", "print", "load", "XMLHttpRequest", "fetch", "readFile"]:
        assert one.find(host=f"typeof {name}") == "ok undefined", name


def test_an_endless_evaluation_ends_without_the_broker(evaluator):
    one = evaluator("function FindProxyForURL() { while (true) {} }")
    assert one.find() == ""
    assert one.process.wait(60) == -signal.SIGALRM


def test_names_are_resolved_within_a_limit(evaluator):
    """A name server that never answers cannot delay an evaluation; here the limit is on the number of names."""
    one = evaluator("function FindProxyForURL() { var n = 0; for (var i = 0; i < 100; i++) if (dnsResolve('127.0.0.1')) n++; return '' + n; }")
    assert one.find() == "ok 64" and one.find() == "ok 64"


def test_without_its_resolver_the_process_ends(evaluator):
    """The broker then starts a new one; otherwise all names would be unknown to the script from then on."""
    one = evaluator("function FindProxyForURL() { return '' + dnsResolve('127.0.0.1'); }")
    assert one.find() == "ok 127.0.0.1"
    resolver, = pathlib.Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text().split()
    os.kill(int(resolver), signal.SIGKILL)
    assert one.find() == "" and one.process.wait(60) != 0


SILENT_NAME_SERVER = """
import socket, subprocess, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
done = subprocess.run([sys.argv[1]], input=sys.stdin.buffer.read(), capture_output=True, env={})
sys.stdout.buffer.write(done.stdout)
assert server.recv(512), "the name server was asked"
"""


def test_a_silent_name_server_does_not_hold_up_an_evaluation(tmp_path):
    """Ten lookups together have a second. If each of them had one, the process would end itself first."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    script = b"function FindProxyForURL() { var t = ''; for (var i = 0; i < 10; i++) t += dnsResolve('n' + i + '.example'); return t; }"
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-net", "--uid", "0", "--cap-add", "CAP_NET_BIND_SERVICE",
         "--ro-bind", str(tmp_path / "resolv.conf"), "/etc/resolv.conf", "--die-with-parent",
         sys.executable, "-c", SILENT_NAME_SERVER, program("watchword-pac")],
        input=b"load %d\n%sfind http://h.test/ h.test\n" % (len(script), script), capture_output=True, timeout=60)
    assert done.stdout == b"ok \nok " + b"null" * 10 + b"\n", done


@pytest.mark.parametrize("script, line, construct", [
    ("var a = 1;\nlet b = 1;", 2, "let"), ("var f =\n\nx => x;", 3, "an arrow function"), ("class A {}", 1, "class"),
    ("var a = `x`;", 1, "a template literal"), ("for (var a of [1]) {}", 1, "for ... of"), ("f(...[1]);", 1, "the operator ..."),
    ("function f(a = 1) {}", 1, "a default value of a parameter"), ("var [a] = [1];", 1, "destructuring"),
    ("const {a} = {};", 1, "destructuring"), ("async function f() {}", 1, "async"), ("var a = b?.c;", 1, "the operator ?."),
    ("var a = b ?? c;", 1, "the operator ??"), ("function* f() {}", 1, "a generator function"),
    ("/* let a = 1; `\n*/ // class A {}\nvar r = /[/`]=>`/, s = \"let b = `\";\nlet c;", 4, "let")])
def test_a_construct_after_ecmascript_5_is_named_with_its_line(evaluator, script, line, construct):
    assert evaluator(script).loaded == f"error line {line}: {construct} is not supported; write ECMAScript 5"


@pytest.mark.tier3  # The evaluator ends itself after a time, which a busy machine uses up.
@pytest.mark.parametrize("word", ["function ", "function(", "function;"])
def test_the_search_for_a_construct_is_not_quadratic(evaluator, word):
    start = time.monotonic()
    assert "SyntaxError" in evaluator(word * 20_000).loaded
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("script", ["var a = ;", "function f(", "x = 'a\n';", "/* "])
def test_another_syntax_error_is_reported_as_it_is(evaluator, script):
    assert "SyntaxError" in evaluator(script).loaded
