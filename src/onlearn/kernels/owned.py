"""The kernel as a parameter of an estimator: its own parameters by name, also where it is spelled as text."""

from __future__ import annotations

import copy
from typing import Any

from onlearn.kernels.base import Kernel
from onlearn.kernels.formula import get


def own(kernel: Kernel) -> Kernel:
    """A copy, inner kernels and all, so that who changes the kernel does not change what was learned with it."""
    made = copy.copy(kernel)
    for name, part in kernel.get_params(deep=False).items():
        if isinstance(part, Kernel):
            made.__dict__[name] = own(part)  # not set, which would check it all again
    return made


class OwnsKernel:
    """The part of an estimator that shows and sets ``kernel__sigma``, be the kernel an object or its formula."""

    kernel: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with those of the kernel as ``kernel__parameter``."""
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep:
            try:
                owned = get(self.kernel).get_params(deep=True)
            except (TypeError, ValueError):  # a wrong spelling is reported by fit
                owned = {}
            params.update({f"kernel__{key}": value for key, value in owned.items()})
        return params

    def set_params(self, **params: Any) -> Any:
        """Change parameters."""
        from sklearn.base import clone

        nested = {key: params.pop(key) for key in list(params) if key.startswith("kernel__")}
        super().set_params(**params)  # type: ignore[misc]
        if nested:
            own = {key.removeprefix("kernel__"): value for key, value in nested.items()}
            self.kernel = clone(get(self.kernel)).set_params(**own)  # what was learned keeps the one it has
        return self
