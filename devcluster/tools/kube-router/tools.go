//go:build tools

// Package tools pins kube-router. It is never compiled.
package tools

import _ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
