package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
	"monopod/agent/cli/command"
	"monopod/agent/config"
	"monopod/agent/doctor"
	"monopod/agent/handover"
	"monopod/agent/managed"
	"monopod/agent/node"
	"monopod/agent/print"
	values "monopod/agent/settings"
	"monopod/agent/status"
	"monopod/cri"
)

func doctorCommand() *cli.Command {
	var output string
	return &cli.Command{
		Name: "doctor", Usage: "examine this machine for what the agent needs",
		Description: `
Give it the flags that "monopod run" gets, before the agent is started. Beside an
agent that runs they are not needed: it says which runtime, folders and endpoint it
has. Each line is ok, a warning or an error, with what mends it below. Nothing is
changed.

Exit codes: 0; 1: there is an error; 2: wrong flags or settings.`,
		Flags: append(runFlags(), command.OutputFlag(&output, "json", "yaml")),
		Action: func(c *cli.Context) error {
			if err := command.NoArgs(c, ""); err != nil {
				return err
			}
			cfg, warnings, err := readSettings(c)
			if err != nil {
				return command.UsageError("%w", err)
			}
			m, err := machine(c.Context, cfg)
			if err != nil {
				return err
			}
			defer m.Runtime.Close()
			for _, w := range warnings {
				m.Ignored = append(m.Ignored, w.Error())
			}
			found := doctor.Examine(c.Context, m)
			if c.Context.Err() != nil {
				return cli.Exit("", command.ExitInterrupted)
			}
			if err := doctor.Print(c.App.Writer, output, found); err != nil {
				return err
			}
			if doctor.Failed(found) {
				return cli.Exit("", 1)
			}
			return nil
		},
	}
}

// machine returns this machine, with the agent that runs on it, if any.
func machine(ctx context.Context, cfg config.Config) (*doctor.Machine, error) {
	cfg = besideAgent(ctx, cfg)
	endpoints := values.Endpoints(cfg)
	c, err := cri.Dial(endpoints...)
	if err != nil {
		return nil, err
	}
	m := &doctor.Machine{Config: cfg, Runtime: c, Endpoints: endpoints, NoStart: managed.Possible(), Kubelet: handover.Kubelet(proc), Now: time.Now(), User: os.Geteuid()}
	var files status.Manifests
	if err := client.GetJSON(ctx, cfg.Socket, "/manifests", &files); err == nil {
		m.Up = true
		if len(cfg.Manifests) == 0 {
			m.Config.Manifests = files.Folders()
		}
		for _, p := range files.Reports {
			m.Reports = append(m.Reports, print.ProblemLine(p, ""))
			m.NoTCP = m.NoTCP || strings.HasPrefix(p.Message, status.TCPNotServed)
		}
		for _, p := range files.Settings {
			line := print.ProblemLine(p, "")
			if p.Warning {
				m.Waits = append(m.Waits, line)
			} else if !slices.Contains(cfg.Absent, p) {
				m.Wrong = append(m.Wrong, line)
			}
		}
	} else if err := values.Check(cfg); err != nil {
		m.Wrong = append(m.Wrong, err.Error())
	}
	return m, nil
}

// besideAgent returns the settings with those of the agent that runs there, for what neither flag
// nor file gave.
func besideAgent(ctx context.Context, cfg config.Config) config.Config {
	var running struct {
		Settings struct {
			Endpoint   string `json:"containerRuntimeEndpoint"`
			Managed    bool   `json:"managedRuntime"`
			Root       string `json:"root"`
			PodLogs    string `json:"podLogsDir"`
			Listen     string `json:"listen"`
			ResolvConf string `json:"resolvConf"`
			URL        string `json:"staticPodURL"` // without its password
			Driver     string `json:"cgroupDriver"`
		} `json:"kubeletconfig"`
	}
	if client.GetJSON(ctx, cfg.Socket, "/configz", &running) != nil {
		return cfg
	}
	common, has := config.Default(), running.Settings
	cfg.ManagedRuntime = cfg.ManagedRuntime || has.Managed && cfg.Endpoint == ""
	for _, s := range []struct {
		given         *string
		usual, agents string
	}{
		{&cfg.Endpoint, common.Endpoint, has.Endpoint},
		{&cfg.Root, common.Root, has.Root},
		{&cfg.PodLogs, common.PodLogs, has.PodLogs},
		{&cfg.Listen, common.Listen, has.Listen},
		{&cfg.ResolvConf, common.ResolvConf, has.ResolvConf},
		{&cfg.ManifestURL, common.ManifestURL, has.URL},
	} {
		if *s.given == s.usual {
			*s.given = s.agents
		}
	}
	// Another driver may be that of a file, which gives way to the runtime's.
	if has.Driver == node.DriverNone && cfg.CgroupDriver == node.DriverAuto {
		cfg.CgroupDriver = node.DriverNone
	}
	return cfg
}
