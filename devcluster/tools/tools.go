//go:build tools

// Package tools names the program that is built from another module as it is,
// so that go.mod pins it. It is never compiled.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
