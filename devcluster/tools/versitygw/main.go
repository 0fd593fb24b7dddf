// Command versitygw is Versity's S3 server with the one backend that the
// development cluster uses, a folder. The program of that name also carries
// its own test suite and the clients of other backends, which take as long to
// compile as the server does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	config := embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY_ID"),
		RootUserSecret: os.Getenv("ROOT_SECRET_ACCESS_KEY"),
		// What follows are the defaults of the program of that name.
		MaxConnections:      250000,
		MaxRequests:         100000,
		AdminMaxConnections: 250000,
		AdminMaxRequests:    100000,
		MultipartMaxParts:   10000,
		IAMCacheTTL:         120,
		IAMCachePrune:       3600,
	}
	options := posix.PosixOpts{Concurrency: 5000, IOBufferSize: 1024 * 1024, CopyObjectThreshold: 5 * 1024 * 1024 * 1024}

	port := flag.String("port", "127.0.0.1:7070", "address and port to listen on")
	flag.StringVar(&config.HealthPath, "health", "", "path that answers without credentials as long as the server serves")
	flag.StringVar(&config.Region, "region", "us-east-1", "region of the buckets")
	flag.BoolVar(&config.Quiet, "quiet", false, "no line for each request")
	flag.StringVar(&options.SideCarDir, "sidecar", "", "folder of the objects' metadata (required)")
	flag.Parse()
	if flag.NArg() != 1 || options.SideCarDir == "" {
		fmt.Fprintln(os.Stderr, "usage: versitygw [FLAG …] --sidecar METADATA DATA")
		flag.PrintDefaults()
		os.Exit(2)
	}
	config.Ports = []string{*port}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, flag.Arg(0), &config, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, data string, config *embedgw.Config, options posix.PosixOpts) error {
	metadata, err := meta.NewSideCar(options.SideCarDir)
	if err != nil {
		return fmt.Errorf("the folder of the metadata: %w", err)
	}
	backend, err := posix.New(data, metadata, options)
	if err != nil {
		return fmt.Errorf("the folder of the data: %w", err)
	}
	return embedgw.RunVersityGW(ctx, backend, config)
}
