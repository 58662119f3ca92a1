"""Documents as YAML that people read: texts of several lines as they are, keys in the order in which they were put."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


class _Dumper(yaml.SafeDumper):
    """A dumper of its own: what is registered with it changes no other."""

    def ignore_aliases(self, data: object) -> bool:
        """Each value is written out: two that are the same object are no reference."""
        del data
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def yaml_text(document: Mapping[str, object]) -> str:
    """The document; reading it gives the same values again."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
