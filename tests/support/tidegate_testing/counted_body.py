"""The body of an object that is large, and counts what is read of it. No I/O."""

import io


class CountedBody(io.BytesIO):
    """A claim without an end; whoever reads it whole would run out of memory."""

    def __init__(self, read: list[int]) -> None:
        """Note in ``read`` how many bytes each read got."""
        super().__init__(b'{"uid":"' + b"x" * 1_000_000)
        self._read = read

    def read(self, size: int | None = -1, /) -> bytes:
        """Read so many bytes."""
        content = super().read(-1 if size is None else size)
        self._read.append(len(content))
        return content
