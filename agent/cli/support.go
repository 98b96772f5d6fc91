package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/cli/support"
	"monopod/agent/message"
)

func supportCommand() *cli.Command {
	return &cli.Command{
		Name: "support", ArgsUsage: "[FILE|-]", Usage: "write an archive of what explains the state of this machine's agent",
		Description: `
The archive is for a person who helps: what "monopod doctor" and the other
commands print, the settings, the last log of the agent and of containers that are not
well, and the configuration of the runtime and the network. It has no value that a
Secret, a ConfigMap or a variable has now; values that a former version had are not
known, and a log may quote one. about.txt in it says what is there. Look through it
before it is sent.

It works without an agent, too: then it has what the last one reported. Give it
the flags that "monopod run" gets. FILE is made in this folder with a name of its
own if it is not given, - is standard output.

Exit codes: 0; 1: it could not be written; 2: wrong flags or settings.`,
		Flags:  runFlags(),
		Action: writeSupport,
	}
}

// writeSupport writes the archive, and prints what is in it.
func writeSupport(c *cli.Context) error {
	if c.Args().Len() > 1 {
		return command.UsageError("support writes one file")
	}
	cfg, _, err := readSettings(c)
	if err != nil {
		return command.UsageError("%w", err)
	}
	x := newExamined(c.Context, cfg)
	dir := "monopod-support-" + cmp.Or(x.node, "node") + "-" + x.now.UTC().Format("20060102-150405")
	file := cmp.Or(c.Args().First(), dir+".tar.gz")
	parts := x.parts(c.Context)
	if c.Context.Err() != nil {
		return cli.Exit("", command.ExitInterrupted)
	}
	if file == "-" {
		_, err := support.Write(c.App.Writer, dir, x.now, parts, &x.secrets)
		return err
	}
	written, err := writeArchive(file, dir, x, parts)
	if err != nil {
		return err
	}
	for _, p := range written {
		fmt.Fprintf(c.App.Writer, "%9s  %s\n", message.Size(uint64(len(p.Text))), p.Name)
	}
	fmt.Fprintf(c.App.Writer, "%s has these files. %s says what they are; look through them before you send them.\n", file, support.AboutFile)
	return nil
}

// writeArchive writes the file, which must not exist: nothing of it stays if that fails.
func writeArchive(file, dir string, x *examined, parts []support.Part) ([]support.Part, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	written, err := support.Write(f, dir, x.now, parts, &x.secrets)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), os.Remove(file))
	}
	return written, nil
}
