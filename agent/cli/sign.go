package cli

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/command"
	"monopod/agent/disk"
	"monopod/manifests"
	"monopod/manifests/shell"
	"monopod/manifests/signature"
)

func signCommand() *cli.Command {
	var path string
	var isNew bool
	return &cli.Command{
		Name: "sign", ArgsUsage: "[CONTENT ...]", Usage: "sign manifests for agents that take them from a URL",
		Description: `
CONTENT is a file with a List, as a web server gives it to agents. CONTENT.sig gets
its signature, which belongs beside it on the server, and is uploaded before it. The
annotation monopod.serial of the List must be higher with each change, and
monopod.node, if there is one, is the only node that takes it.

The line that is printed last belongs into the settings of the agents: with it they
take nothing from their URL that this key has not signed.

Exit codes: 0; 1: something could not be read or written, or cannot be signed;
2: wrong flags.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", TakesFile: true, Destination: &path, Usage: "the `FILE` of the private key (ed25519; PEM, PKCS #8)"},
			&cli.BoolFlag{Name: "new-key", Destination: &isNew, Usage: "make that file first, with a new key"},
		},
		Action: func(c *cli.Context) error {
			if path == "" || c.NArg() == 0 && !isNew {
				return command.UsageError("sign what, with which key? As in `monopod sign --key fleet.pem pods.yaml`")
			}
			key, err := signingKey(c, path, isNew)
			if err != nil {
				return err
			}
			for _, content := range c.Args().Slice() {
				if err := sign(c, key, content); err != nil {
					return err
				}
			}
			fmt.Fprintf(c.App.Writer, "manifestURLPublicKey: %s\n", signature.Text(key.Public().(ed25519.PublicKey)))
			return nil
		},
	}
}

// signingKey reads the private key, or makes it.
func signingKey(c *cli.Context, path string, isNew bool) (ed25519.PrivateKey, error) {
	if isNew {
		key, file, err := signature.NewKey()
		if err == nil {
			err = writeKey(path, file)
		}
		if err == nil {
			fmt.Fprintf(c.App.Writer, "%s is written: keep it secret, and away from the web server\n", path)
		}
		return key, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("key: %w: make one with --new-key", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("key %s: others than its owner can open the file (mode %04o): chmod 600 %s", path, mode, shell.Word(path))
	}
	file, err := manifests.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	key, err := signature.ParsePrivateKey(file)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", path, err)
	}
	return key, nil
}

// writeKey writes a file that is not there yet: what was signed with the former key would count no
// more.
func writeKey(path string, key []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("key %s: is there already: leave out --new-key, or name another file", path)
	}
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("key: %w", err), os.Remove(path))
	}
	return nil
}

// sign writes the signature of a file, and refuses content that no agent would take.
func sign(c *cli.Context, key ed25519.PrivateKey, path string) error {
	content, err := manifests.ReadFile(path)
	if err != nil {
		return err
	}
	stamp, err := signature.ReadStamp(content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := disk.WriteFile(path+signature.Suffix, signature.Sign(key, content), 0o644); err != nil {
		return err
	}
	node := "any node"
	if stamp.Node != "" {
		node = "the node " + stamp.Node
	}
	fmt.Fprintf(c.App.Writer, "%s is written: serial %d, for %s\n", path+signature.Suffix, stamp.Serial, node)
	return nil
}
