"""What scripts call by the package's name stays what it is: an imported module of that name would take its place."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "spark_app" / "tidegate_spark"


def test_no_module_has_the_name_of_a_public_function() -> None:
    names = next(
        ast.literal_eval(node.value)
        for node in ast.parse((PACKAGE / "__init__.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert "starting_offsets" in names
    assert sorted(set(names) & modules) == [], (
        "rename these modules of tidegate_spark: once imported, each takes the place of the function of its name"
    )
