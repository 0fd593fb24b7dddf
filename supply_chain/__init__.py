"""What Tidegate is made of: base images by digest, and bills of materials. See docs/design/supply-chain.md."""
