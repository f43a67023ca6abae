"""Settings of decoding that are chosen for a call, in place of those that a model brings."""

from copy import copy
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from .layers import least_logit
from .reach import check_reach

Module = TypeVar("Module", bound=nn.Module)

NO_SUCH_SETTING = (
    "The setting {setting} has no meaning for a model with {clusterer}, which compares mentions "
    "with clusters and not with each other. Leave it at null."
)


@dataclass(frozen=True)
class Decoding:
    """How links are made of scores. None is what the model brings; for what each setting means, see
    `model/architectures.py`.

    mention_threshold (Optional[float]): How probable a mention has to be.
    link_threshold (Optional[float]): How probable the best link of a mention has to be.
    link_members (Optional[int]): How many mentions of a cluster are asked.
    mention_weight (Optional[float]): How much it counts for a link that the two are mentions.
    overlaps (Optional[bool]): Whether mentions of a cluster may overlap.
    reach (Optional[int]): How many mentions before it each one is compared with at least.
    """

    mention_threshold: float | None = None
    link_threshold: float | None = None
    link_members: int | None = None
    mention_weight: float | None = None
    overlaps: bool | None = None
    reach: int | None = None

    def __post_init__(self) -> None:
        for name in ("mention_threshold", "link_threshold"):
            if getattr(self, name) is not None:
                least_logit(name, getattr(self, name))
        if self.link_members is not None and self.link_members < 1:
            raise ValueError(f"Expected link_members to be 1 or more, got {self.link_members}.")
        check_reach(self.reach)

    def extractor(self, module: Module) -> Module:
        """RETURNS (Module): An extractor with the same weights and these settings."""
        if self.mention_threshold is None:
            return module
        threshold = least_logit("mention_threshold", self.mention_threshold)
        return _changed(module, {"min_logit": threshold})

    def clusterer(self, module: Module) -> Module:
        """RETURNS (Module): A clusterer with the same weights and these settings."""
        changes = {
            "link_threshold": ("min_logit", self.link_threshold),
            "link_members": ("members", self.link_members),
            "mention_weight": ("mention_weight", self.mention_weight),
            "overlaps": ("overlaps", self.overlaps),
            "reach": ("reach", self.reach),
        }
        values = {}
        for setting, (attribute, value) in changes.items():
            if value is None:
                continue
            if not hasattr(module, attribute):
                clusterer = type(module).__name__
                raise ValueError(NO_SUCH_SETTING.format(setting=setting, clusterer=clusterer))
            values[attribute] = value
        if self.link_threshold is not None:
            values["min_logit"] = least_logit("link_threshold", self.link_threshold)
        return _changed(module, values)


#: All as the model brings it.
AS_BROUGHT = Decoding()


def _changed(module: Module, values: dict[str, float]) -> Module:
    """A shallow copy, which shares all weights: other threads use the module as it is."""
    if not values:
        return module
    changed = copy(module)
    for name, value in values.items():
        setattr(changed, name, value)
    return changed
