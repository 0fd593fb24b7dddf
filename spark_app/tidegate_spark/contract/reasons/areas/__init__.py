"""The reasons by what they are about, each with meaning, fault and remedy."""
