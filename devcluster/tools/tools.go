//go:build tools

// Package tools names the programs that are built from other modules as they
// are, so that go.mod pins them. It is never compiled.
package tools

import (
	_ "github.com/coredns/coredns"
	_ "github.com/versity/versitygw/cmd/versitygw"
	_ "helm.sh/helm/v4/cmd/helm"
)
