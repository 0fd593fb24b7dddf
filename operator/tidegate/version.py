"""Which Tidegate this is. Reads the installed distribution's metadata once."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("tidegate")
except PackageNotFoundError:  # run from a checkout
    VERSION = "0.0.0+checkout"
