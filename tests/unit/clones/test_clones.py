"""Which pieces of code are found to be alike."""

from textwrap import dedent

from tests.clones import Piece, find_pairs

READ = """
def read(path, size):
    with open(path, "rb") as file:
        content = file.read(size)
    if len(content) < size:
        raise ValueError(f"{path} is short")
    return content
"""
READ_BY_OTHER_NAMES = """
def fetch(name, number):
    '''Return the beginning of a file.'''
    with open(name, "r") as opened:
        found = opened.read(number)
    if len(found) < number:
        raise ValueError(f"{name} has ended")
    return found
"""


def pieces(least: int = 20, **sources: str) -> list[tuple[Piece, Piece]]:
    return [(pair.one, pair.other) for pair in find_pairs({n: dedent(text) for n, text in sources.items()}, least)]


def test_functions_that_differ_in_names_constants_and_docstrings_are_alike() -> None:
    assert pieces(a=READ, b=READ_BY_OTHER_NAMES) == [(Piece("a", 3, 7), Piece("b", 4, 8))]


def test_another_method_makes_a_difference() -> None:
    assert pieces(a=READ, b=READ.replace(".read(", ".peek(").replace("<", ">")) == []


def test_a_run_of_statements_within_longer_functions_is_found_as_far_as_it_goes() -> None:
    longer = READ.replace("    return content", "    del size\n    return content.decode()")
    assert pieces(a=READ, b=longer) == [(Piece("a", 3, 6), Piece("b", 3, 6))]


def test_what_is_small_is_not_worth_a_word() -> None:
    assert pieces(least=200, a=READ, b=READ) == []


def test_what_a_longer_pair_says_is_said_once() -> None:
    loop = """
    def each(files, size):
        for path in files:
            with open(path) as file:
                content = file.read(size)
            if len(content) < size:
                raise ValueError(path)
    """
    assert pieces(a=loop, b=loop) == [(Piece("a", 3, 7), Piece("b", 3, 7))]


def test_a_repetition_in_one_file_is_a_pair_too() -> None:
    assert pieces(a=READ + READ) == [(Piece("a", 3, 7), Piece("a", 10, 14))]
