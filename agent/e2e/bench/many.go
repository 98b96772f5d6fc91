package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
)

// many is an agent with more pods than a node usually has. No bare calls stand beside it: they
// would take as long again, and what is asked is whether all goes on as with few.
type many struct {
	*bench
	agent *monopod
	n     int
}

const (
	manyPrefix = "m"
	// manyLimit is how long one thing may take that is done to all of the pods, for each of them.
	manyLimit = 2 * time.Second
	manyLook  = 200 * time.Millisecond
)

// measureMany measures n pods: all start, rest, one crashes, one is edited, all are edited, the
// agent and the runtime start again, all go. What none of that may do is an error: to touch other
// pods, or to let a runtime call wait until its deadline.
func measureMany(ctx context.Context, b *bench, m *monopod, n int) (err error) {
	all := &many{b, m, n}
	if err := m.prepare(); err != nil {
		return err
	}
	m.agent.Settings += fmt.Sprintf("maxPods: %d\n", n)
	if err := m.agent.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.agent.Stop()) }()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"all start", all.start},
		{"all rest", func(ctx context.Context) error { return b.footprint(ctx, m.agent.Pid(), n) }},
		{"one crashes", all.crashOne},
		{"one is edited", all.editOne},
		{"the labels of all are edited", all.label},
		{"the commands of all are edited", all.editAll},
		{"the agent starts again", func(ctx context.Context) error { return b.adoption(ctx, m, manyPrefix, n) }},
		{"the runtime starts again", all.restartRuntime},
		{"all go", all.stop},
	} {
		say("%d pods: %s", n, step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%d pods, %s: %w", n, step.name, err)
		}
	}
	return all.starved()
}

// timed notes how long something takes, and the agent's CPU of it.
func (m *many) timed(figure string, asked time.Time, done func() error) error {
	from, err := cpuTime(m.agent.agent.Pid())
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	m.sheet.own(fmt.Sprintf("%d pods: %s", m.n, figure), "ms", 0, ms(time.Since(asked)))
	to, err := cpuTime(m.agent.agent.Pid())
	m.sheet.own(fmt.Sprintf("%d pods: %s, agent's CPU", m.n, figure), "ms", 0, ms(to-from))
	return err
}

// write writes the manifests of pods, each changed by a replacement of text.
func (m *many) write(n int, old, new string) error {
	for i := range n {
		name := fmt.Sprint(manyPrefix, i)
		if err := m.agent.agent.Write(name+".yaml", strings.Replace(small(name), old, new, 1)); err != nil {
			return err
		}
	}
	return nil
}

// small returns the manifest of a pod of which a thousand fit on two cores.
func small(name string) string {
	return strings.Replace(manifest(name), "cpu: 10m, memory: 16Mi", "cpu: 1m, memory: 1Mi", 1)
}

// until waits until so many containers run, none of which is one of others.
func (m *many) until(ctx context.Context, want int, others map[string]bool) error {
	return rig.Until(ctx, time.Duration(m.n)*manyLimit, func() error {
		defer pause(ctx, manyLook)
		ids, err := m.ids(ctx)
		for id := range others {
			delete(ids, id)
		}
		if err == nil && len(ids) != want {
			err = fmt.Errorf("%d containers run, want %d", len(ids), want)
		}
		return err
	})
}

// ids returns the containers that run.
func (m *many) ids(ctx context.Context) (map[string]bool, error) {
	all, err := m.containers(ctx, manyPrefix)
	ids := map[string]bool{}
	for _, c := range all {
		if c.State == "Running" {
			ids[c.ID] = true
		}
	}
	return ids, err
}

// unchanged returns an error unless all containers but so many are those of before.
func (m *many) unchanged(ctx context.Context, before map[string]bool, others int) error {
	now, err := m.ids(ctx)
	for id := range before {
		delete(now, id)
	}
	if err == nil && len(now) != others {
		err = fmt.Errorf("%d containers were restarted, want %d", len(now), others)
	}
	return err
}

func (m *many) start(ctx context.Context) error {
	asked := time.Now()
	return m.timed("all started", asked, func() error {
		return errors.Join(m.write(m.n, "", ""), m.until(ctx, m.n, nil))
	})
}

func (m *many) crashOne(ctx context.Context) error {
	all, err := m.running(ctx, manyPrefix, m.n)
	if err != nil {
		return err
	}
	return m.crash(ctx, m.agent, fmt.Sprintf("%d pods: crashed container -> successor started", m.n), all[0])
}

func (m *many) editOne(ctx context.Context) error { return m.edit(ctx, "the command of one edited", 1) }
func (m *many) editAll(ctx context.Context) error {
	return m.edit(ctx, "the commands of all edited", m.n)
}

// edit restarts the containers of the first pods, and of no others, by another command.
func (m *many) edit(ctx context.Context, figure string, pods int) error {
	before, err := m.ids(ctx)
	if err != nil {
		return err
	}
	command := fmt.Sprintf(`"%d"`, 3600+pods)
	err = m.timed(figure, time.Now(), func() error {
		return errors.Join(m.write(pods, `"3600"`, command), m.until(ctx, pods, before))
	})
	return errors.Join(err, m.until(ctx, m.n, nil), m.unchanged(ctx, before, pods))
}

// label edits all pods without a restart of any. The command is what editOne left.
func (m *many) label(ctx context.Context) error {
	before, err := m.ids(ctx)
	if err != nil {
		return err
	}
	const labels = "  labels: {edited: again}\n"
	err = m.timed("the labels of all edited", time.Now(), func() error {
		for i := range m.n {
			name := fmt.Sprint(manyPrefix, i)
			text := strings.Replace(small(name), "metadata:\n", "metadata:\n"+labels, 1)
			if i == 0 {
				text = strings.Replace(text, `"3600"`, `"3601"`, 1)
			}
			if err := m.agent.agent.Write(name+".yaml", text); err != nil {
				return err
			}
		}
		return rig.Until(ctx, time.Duration(m.n)*manyLimit, func() error {
			pods, err := m.agent.agent.Pods(ctx)
			has := 0
			for _, p := range pods {
				if p.Labels["edited"] != "" {
					has++
				}
			}
			if err == nil && has != m.n {
				err = fmt.Errorf("%d pods have their labels", has)
			}
			return err
		})
	})
	return errors.Join(err, m.unchanged(ctx, before, 0))
}

// restartRuntime restarts the runtime; the agent is ready again, and no container was restarted.
func (m *many) restartRuntime(ctx context.Context) error {
	before, err := m.ids(ctx)
	if err != nil {
		return err
	}
	if err := m.rig.Runtime.Restart(ctx); err != nil {
		return err
	}
	err = m.timed("the agent healthy after a restart of the runtime", time.Now(), func() error {
		return rig.Until(ctx, time.Minute, func() error { return m.agent.agent.Healthy(ctx) })
	})
	pause(ctx, 10*time.Second) // what it would do to pods by then it has done
	return errors.Join(err, m.unchanged(ctx, before, 0))
}

func (m *many) stop(ctx context.Context) error {
	asked := time.Now()
	err := m.timed("all containers gone", asked, func() error {
		return errors.Join(m.agent.agent.Clear(), m.until(ctx, 0, nil))
	})
	return errors.Join(err, m.removed(ctx, manyPrefix), m.agent.forgotten(ctx))
}

// starved returns an error if the agent's log tells of a call that ended by its deadline, and notes
// how many took longer than usual.
func (m *many) starved() error {
	f, err := os.Open(m.agent.agent.Log)
	if err != nil {
		return err
	}
	defer f.Close()
	hung, late := 0, []string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text := lines.Text()
		if strings.Contains(text, "runtime call hangs") {
			hung++
		}
		if strings.Contains(text, "no answer within") { // what the agent says of a call that its deadline ends
			late = append(late, text)
		}
	}
	m.sheet.own(fmt.Sprintf("%d pods: runtime calls that took over 10 s", m.n), "calls", 0, float64(hung))
	if len(late) > 0 {
		return fmt.Errorf("%d runtime calls ended by their deadline, such as %s", len(late), late[0])
	}
	return lines.Err()
}
