"""The version of Tidegate, from the installed distribution's metadata; read once."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("tidegate")
except PackageNotFoundError:  # run from a checkout
    VERSION = "0.0.0+checkout"
