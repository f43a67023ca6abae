from .dialogue import dialogue
from .extensions import register_extensions
from .loading import load

__all__ = ["dialogue", "load", "register_extensions"]
__version__ = "0.1.0"

register_extensions()
