from .dialogue import dialogue
from .extensions import register_extensions

__all__ = ["dialogue", "register_extensions"]
__version__ = "0.1.0"

register_extensions()
