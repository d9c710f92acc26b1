"""Logins in a browser as time passes: the clocks of the broker are moved from outside."""

from rig.bodies import eventually
from rig.login_sites import forgotten, log_in, logged_in, site, started, statuses  # noqa: F401

HOUR = 3600


def pass_time(faults, seconds):
    faults.move_wall(seconds)
    faults.pass_time(seconds)


def grants(site):
    return [request.form["grant_type"] for request in site.token_requests()]


def test_an_hour_later_no_person_is_asked(stage, site, gnome, faults):
    broker = site.broker(environment={**gnome.for_broker, **faults.environment})
    client = stage.client(broker=broker)
    logged_in(client, site)
    pass_time(faults, HOUR + 1)
    assert client.fetch(site.url)["result"]["status"] == 200
    assert client.challenges.empty() and grants(site) == ["authorization_code", "refresh_token"]
    assert len(site.server.authorizations) == 1


def test_a_token_in_use_is_renewed_every_hour(stage, site, faults):
    """Also without a keyring: a login in use stays in the session."""
    broker = site.broker(environment=faults.environment)
    client = stage.client(broker=broker)
    logged_in(client, site)
    for minute in range(5, 70, 5):
        pass_time(faults, 5 * 60)
        result = client.fetch(site.url)["result"]
        assert (result["status"], result["exchanges"]) == (200, 1), "the token is renewed before it expires"
        # The renewal begins after 48 minutes; the time must not pass meanwhile.
        eventually(lambda: broker.log.count("token obtained") == 1 + (minute >= 50), "the token is renewed")
    assert client.challenges.empty() and grants(site) == ["authorization_code", "refresh_token"]


def test_without_a_keyring_the_login_ends_with_the_time_of_the_session(stage, site, faults):
    client = stage.client(broker=site.broker(environment=faults.environment))
    logged_in(client, site)
    pass_time(faults, HOUR // 2)
    assert forgotten(client, site) and grants(site) == ["authorization_code"]


def test_a_revoked_login_is_asked_for_once_an_hour_later(stage, site, gnome, faults):
    broker = site.broker(environment={**gnome.for_broker, **faults.environment})
    client = stage.client(broker=broker)
    logged_in(client, site)
    site.server.revoke_all()
    pass_time(faults, HOUR + 1)
    calls = started(client, site.url, count=9)
    log_in(client)
    assert statuses(client, calls) == [200] * 9
    assert client.challenges.empty() and len(site.server.authorizations) == 2
