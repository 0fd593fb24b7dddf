"""Pure decisions about StreamSnapshots, in the same shape as those about applications."""
