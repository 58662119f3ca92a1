"""site.toml: root's alone, and every word of it is understood or told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.site import site_config
from slurm_agent_tools.server.site.site_config import SiteConfig, of_root_alone, parse, read

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="whose a file is, only root can say")


def test_an_empty_file_is_the_usual_place_of_everything():
    config = parse({})
    assert config == SiteConfig()
    assert config.socket == Path("/run/slurm-agent-tools/site.sock")
    assert config.used == Path("/var/lib/slurm-agent-tools/tickets/used")


@pytest.mark.parametrize(
    ("written", "field", "said"),
    [
        ({"ticket_second": 60}, "ticket_second", "is no key of site.toml"),
        ({"ticket_seconds": 5}, "ticket_seconds", "greater than or equal to 30"),
        ({"ticket_seconds": "soon"}, "ticket_seconds", "valid integer"),
        ({"tokens": "none"}, "tokens", "'files' or 'hmac'"),
        ({"state": "var/state"}, "state", "is no whole path"),
        ({"state": "/var/../etc"}, "state", "is no whole path"),
        ({"socket": "/run/" + "x" * 120}, "socket", "longer than 100 bytes"),
        ({"account": "Site Guard"}, "account", "is no name of an account"),
        ({"page_group": "Web Servers"}, "page_group", "is no name of a group"),
        ({"account": "root"}, "site.toml", "account must be one of its own"),
        ({"account": "slurm"}, "site.toml", "account must be one of its own"),
        ({"agent_users": ["slurm-agent-site"]}, "site.toml", "submits no jobs"),
        ({"agent_users": ["ada,bob"]}, "agent_users", "is no name"),
        ({"agent_users": ["ada"], "exempt_users": ["ada"]}, "site.toml", "cannot both"),
        ({"state": "/srv/a", "tickets": "/srv/a/tickets"}, "site.toml", "none inside another"),
        ({"state": "/srv/a", "socket": "/srv/a/site.sock"}, "site.toml", "none inside another"),
        ({"state": "/srv/a", "tickets": "/srv/a"}, "site.toml", "must be four"),
    ],
)
def test_what_is_not_understood_is_told_with_field_value_and_mend(written, field, said):
    with pytest.raises(ConfigError, match=said) as caught:
        parse(written, Path("/etc/site.toml"))
    assert caught.value.field == field
    assert "/etc/site.toml" in caught.value.hint


@pytest.fixture
def place(tmp_path) -> Path:
    tmp_path.chmod(0o755)
    path = tmp_path / "site.toml"
    path.write_text('tokens = "hmac"\n')
    path.chmod(0o644)
    return path


@as_root
def test_roots_file_is_read(place):
    assert read(place).tokens == "hmac"


@as_root
@pytest.mark.parametrize("what", ["the file", "its folder", "the mode of the file", "a link"])
def test_a_file_that_others_could_change_is_refused_with_what_to_run(place, tmp_path, what):
    loose = place
    if what == "the file":
        os.chown(place, 65534, 0)
    elif what == "its folder":
        os.chown(tmp_path, 65534, 0)
        loose = tmp_path
    elif what == "the mode of the file":
        place.chmod(0o664)
    else:
        link = tmp_path / "link.toml"
        link.symlink_to(place)
        os.chown(link, 65534, 0, follow_symlinks=False)
        loose = place = link
    with pytest.raises(ConfigError, match="could be changed by others than root") as caught:
        read(place)
    assert f"chown root {loose}; chmod go-w {loose}" in caught.value.hint


@as_root
def test_a_folder_as_tmp_where_nobody_moves_what_is_anothers_does_no_harm(place, tmp_path):
    tmp_path.chmod(0o1777)
    of_root_alone(place)


def test_a_file_that_is_missing_or_no_toml_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(site_config, "of_root_alone", lambda _: None)
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "site.toml")
    (tmp_path / "site.toml").write_text("tokens = \n")
    with pytest.raises(ConfigError, match="is not TOML"):
        read(tmp_path / "site.toml")


@as_root
def test_a_missing_file_is_told_with_how_to_make_one(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file") as caught:
        read(tmp_path / "site.toml")
    assert "site install" in caught.value.hint
