package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/config"
	"monopod/manifests/shell"
)

// initDir is where init writes, as the Debian package does.
const initDir = "/etc/monopod"

// settingsName is the name of the file of settings that init writes.
const settingsName = "config.yaml"

// firstManifest is the pod that init writes.
const firstManifest = `# A Pod, as Kubernetes knows it: https://kubernetes.io/docs/concepts/workloads/pods/
# Edit this file, and the pod follows; remove it, and the pod goes.
apiVersion: v1
kind: Pod
metadata:
  name: hello
spec:
  terminationGracePeriodSeconds: 2   # between SIGTERM and SIGKILL when the pod is stopped
  containers:
  - name: main
    image: docker.io/library/busybox:1.37
    command: [sh, -c, "echo hello; exec tail -f /dev/null"]
    resources:
      limits: {memory: 32Mi}
`

func initCommand() *cli.Command {
	return &cli.Command{
		Name: "init", ArgsUsage: "[DIR]", Usage: "write a first manifest and a file of settings",
		Description: `
DIR, ` + initDir + ` if it is not given, gets config.yaml, in which each setting stands
as a comment with what it means, and manifests/hello.yaml. Files that are there
already stay as they are: hello.yaml goes where a config.yaml that is there has its
manifests. The output says which commands come next.`,
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 1 {
				return command.UsageError("init writes one folder")
			}
			dir, err := filepath.Abs(cmp.Or(c.Args().First(), initDir))
			if err != nil {
				return err
			}
			return initialize(c, dir)
		},
	}
}

// initialize writes the files that DIR lacks, and prints what comes next.
func initialize(c *cli.Context, dir string) error {
	settings := filepath.Join(dir, settingsName)
	folder, err := firstFolder(dir)
	if err != nil {
		return err
	}
	manifest := filepath.Join(folder, "hello.yaml")
	var text bytes.Buffer
	if err := config.PrintFirst(&text, folder); err != nil {
		return err
	}
	for _, d := range []string{dir, folder} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for _, f := range []struct{ path, text string }{{settings, text.String()}, {manifest, firstManifest}} {
		said, err := writeFirst(f.path, f.text)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.App.Writer, "%s %s\n", f.path, said)
	}
	fmt.Fprint(c.App.Writer, nextCommands(dir, settings))
	return nil
}

// firstFolder returns the folder of manifests into which init writes with this DIR: the last of the
// settings that are there, which wins over the others, else one below DIR.
func firstFolder(dir string) (string, error) {
	settings := filepath.Join(dir, settingsName)
	if _, err := os.Stat(settings); errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(dir, "manifests"), nil
	}
	c, _, err := config.ReadFile(settings, config.Default())
	if err != nil {
		return "", fmt.Errorf("nothing is written, as the settings that are there cannot be read: %w", err)
	}
	if len(c.Manifests) == 0 {
		return "", fmt.Errorf("nothing is written, as the settings of %s have no folder of manifests: give it one by staticPodPath", settings)
	}
	last := c.Manifests[len(c.Manifests)-1]
	if isOneFile(last) {
		return "", fmt.Errorf("nothing is written, as the settings of %s have one file of manifests, %s: give them a folder by staticPodPath, or write into that file", settings, last)
	}
	return last, nil
}

// isOneFile reports whether manifests are in one file at a path, or would be: of what is not there yet
// the name tells.
func isOneFile(path string) bool {
	fi, err := os.Stat(path)
	if err == nil {
		return !fi.IsDir()
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

// writeFirst writes a file unless it is there, and returns which of both is so.
func writeFirst(path, text string) (said string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "is there already, and stays as it is", nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return "is written", nil
}

// nextCommands says what comes after init: systemd runs the agent where its unit has these
// settings.
func nextCommands(dir, settings string) string {
	file := shell.Word(settings)
	run := "monopod run --config " + file
	if dir == initDir && client.HasUnit() {
		run = "systemctl enable --now monopod"
	}
	return fmt.Sprintf(`
Next:

    monopod doctor --config %s   # does this machine have what the agent needs?
    %s
    monopod ps   # in another terminal: what runs, and what is wrong
`, file, run)
}

// sayEmpty logs what to do about folders without a file. settings is the file of settings, "" for none.
func sayEmpty(log *slog.Logger, dirs []string, settings string) {
	isFilled := func(dir string) bool {
		files, err := os.ReadDir(dir)
		return err != nil || len(files) > 0
	}
	if len(dirs) == 0 || slices.ContainsFunc(dirs, isFilled) {
		return
	}
	last := dirs[len(dirs)-1]
	text := "the folder of manifests is empty: a Pod manifest that is put there runs at once"
	if first := initFor(last, settings); first != "" {
		text += "; `" + first + "` writes a first one"
	}
	log.Info(text, "manifests", last)
}

// initFor returns the init command that writes into a folder of manifests of an agent with that file
// of settings, which may be ""; "": none does.
func initFor(folder, settings string) string {
	settings = cmp.Or(settings, filepath.Join(initDir, settingsName))
	dir, err := filepath.Abs(filepath.Dir(settings))
	if err != nil || filepath.Base(settings) != settingsName {
		return ""
	}
	first, err := firstFolder(dir)
	switch {
	case err != nil || first != folder:
		return ""
	case dir == initDir:
		return "monopod init"
	}
	return "monopod init " + shell.Word(dir)
}
