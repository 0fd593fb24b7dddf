"""Runs the package beside it as `python -m stranger_package` would; its UDFs live in modules of the package."""

import os
import runpy
import sys

from pyspark import SparkContext, SparkFiles  # noqa: F401

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))

runpy.run_module("stranger_package", run_name="__main__", alter_sys=True)
