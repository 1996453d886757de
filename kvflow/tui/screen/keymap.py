"""All keys of `kvflow top`, and those that a person has given other keys."""

from collections.abc import Iterator, Sequence

from textual.binding import Binding
from textual.keys import Keys, key_to_character

from kvflow.recipe.problem import Finding, did_you_mean
from kvflow.tui.config import Config
from kvflow.tui.screen import keys
from kvflow.tui.screen.listing import Listing
from kvflow.tui.screen.tree_view import TreeView

_NAMES = frozenset(key.value for key in Keys)
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")


def shipped() -> list[Binding]:
    """Every binding as it ships, in the order in which help shows them."""
    listed = [*keys.MAIN, *Listing.BINDINGS, *TreeView.BINDINGS]
    return [binding for binding in listed if isinstance(binding, Binding)]


def chosen(config: Config) -> list[Binding]:
    """Every binding, with the keys that a person has given it.

    Raises:
        ConfigError: an id or a key that there is not, or a key that would do two things.
    """
    bindings = [
        binding.with_key(_spelt(config.keymap[binding.id]), key_display=None)
        if binding.id and binding.id in config.keymap
        else binding
        for binding in shipped()
    ]
    findings = [*_unknown(config)] or [*_doubled(config, bindings)]
    if findings:
        raise config.refused(findings)
    return bindings


def _spelt(text: str) -> str:
    """Keys as Textual spells a list of them."""
    return ",".join(key.strip() for key in text.split(","))


def _unknown(config: Config) -> Iterator[Finding]:
    ids = [binding.id for binding in shipped() if binding.id]
    names = sorted(_NAMES.union(*(keys.expanded(binding) for binding in shipped())))
    for name, text in config.keymap.items():
        at = ("keymap", name)
        if name not in ids:
            close = did_you_mean(name, ids) or " (docs/top.md lists them)"
            yield Finding(at, f"nothing is called {name!r}{close}", on_key=True)
        for key in _spelt(text).split(","):
            if not _is_key(key):
                yield Finding(at, f"there is no key {key!r}{did_you_mean(key, names)}")


def _is_key(name: str) -> bool:
    *modifiers, key = name.split("+") if len(name) > 1 else [name]
    if any(modifier not in _MODIFIERS for modifier in modifiers):
        return False
    return len(key) == 1 or key in _NAMES or key_to_character(key) is not None


def _doubled(config: Config, bindings: Sequence[Binding]) -> Iterator[Finding]:
    """Keys that do two things, told where a person has given one of them."""
    owner: dict[str, str] = {}
    # Those as shipped first, so that what is told is what was changed.
    for binding in sorted(bindings, key=lambda one: one.id in config.keymap):
        for key in keys.expanded(binding):
            other = owner.setdefault(key, binding.id or "")
            if other != binding.id:
                message = f"{key!r} is a key of {other} already: give that another one too"
                yield Finding(("keymap", binding.id or ""), message)
