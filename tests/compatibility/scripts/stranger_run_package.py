"""Runs the package beside it as `python -m stranger_package` would; its UDFs live in modules of the package (spark-submit needs PYTHONPATH or --py-files for these)."""

import os
import runpy
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)

runpy.run_module("stranger_package", run_name="__main__", alter_sys=True)
