"""Noise mechanisms with exact guarantees: one file each, and one line in `all_mechanisms`.

They are imported when the registry is first used: a ledger needs only `mechanisms.accounting`, and
a command that reads it would otherwise start half a second later.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramercy.mechanisms.all_mechanisms import Mechanism, registry
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:  # `import` asks for submodules as well
            raise AttributeError(name)
        return getattr(importlib.import_module(f"{__name__}.all_mechanisms"), name)


__all__ = ["Mechanism", "registry"]
