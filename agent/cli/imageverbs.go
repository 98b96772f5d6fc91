package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"monopod/agent/archives"
	"monopod/agent/cli/client"
	"monopod/agent/message"
	"monopod/agent/print"
	"monopod/agent/status"
	"monopod/cri"
)

// imageVerbs are what is done with images one by one.
var imageVerbs = map[string]func(ctx context.Context, w io.Writer, socket, name string) error{
	"rm": removeImage, "pull": pullImage,
}

// each calls do for all names, and returns all errors.
func each(names []string, do func(string) error) error {
	var failed []error
	for _, name := range names {
		failed = append(failed, do(name))
	}
	return errors.Join(failed...)
}

func removeImage(ctx context.Context, w io.Writer, socket, name string) error {
	done, err := client.RemoveImage(ctx, socket, name)
	if err != nil {
		return err
	}
	return printRemoved(w, done, "removed")
}

func pullImage(ctx context.Context, w io.Writer, socket, name string) error {
	err := client.PullImage(ctx, socket, name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, print.OneLine(name+" pulled"))
	return err
}

func pruneImages(ctx context.Context, w io.Writer, socket string, dry bool) error {
	done, err := client.PruneImages(ctx, socket, dry)
	failed := []error{err}
	for _, text := range done.Failed {
		failed = append(failed, errors.New(print.OneLine(text)))
	}
	err = errors.Join(failed...)
	if len(done.Images) == 0 && err == nil {
		_, err = fmt.Fprintln(w, "All images are needed.")
		return err
	}
	word := "removed"
	if dry {
		word = "would be removed"
	}
	return errors.Join(printRemoved(w, done, word), err)
}

func printRemoved(w io.Writer, all *status.RemovedImages, word string) error {
	for _, i := range all.Images {
		_, err := fmt.Fprintln(w, print.OneLine(fmt.Sprintf("%s %s (%s)", i.Name, word, message.Size(i.Size))))
		if err != nil {
			return err
		}
	}
	return nil
}

// loadImages imports an archive, and tells an agent that runs which images have come.
func loadImages(c *cli.Context, socket, endpoint, file string) error {
	var runtime status.Runtime
	down := client.GetJSON(c.Context, socket, "/runtime", &runtime)
	if down != nil && !client.IsDown(down) {
		return down
	}
	names, err := loadInto(c.Context, file, c.App.Reader, cmp.Or(endpoint, runtime.Endpoint))
	if err != nil {
		return err
	}
	if down == nil {
		err = client.ImagesLoaded(c.Context, socket, names)
	}
	for _, name := range names {
		fmt.Fprintln(c.App.Writer, print.OneLine(name+" loaded"))
	}
	return err
}

// loadInto imports an archive into a runtime; "" is the first of this machine's that answers.
func loadInto(ctx context.Context, file string, stdin io.Reader, endpoint string) ([]string, error) {
	endpoints := cri.WellKnown()
	if endpoint != "" {
		endpoints = []string{endpoint}
	}
	runtime, err := cri.Dial(endpoints...)
	if err != nil {
		return nil, err
	}
	defer runtime.Close()
	names, err := archives.Load(ctx, runtime, file, stdin)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", file, err)
	}
	return names, nil
}
