// Command kubectl is apart from the other Kubernetes programs, because it is
// called thousands of times: as one of them, each call would take twice the
// processor time, for the starts of packages that it does not use.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
}
