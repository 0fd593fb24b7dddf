"""Takes messages in, has them logged, and says what came of them."""
