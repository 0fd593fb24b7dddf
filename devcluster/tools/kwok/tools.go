//go:build tools

// Package tools pins kwok. It is never compiled.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
