package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

const (
	settleLimit = 2 * time.Minute
	leaveLimit  = time.Minute
	webPort     = 8080 // testdata/manifests/web.yaml
)

// start runs monopod on a copy of the manifests, so that the reader may edit them.
func (d *demo) start(ctx context.Context) error {
	var err error
	if d.binary == "" {
		say("building monopod")
		if d.binary, err = rig.Build(d.rig.Dir); err != nil {
			return err
		}
	}
	if d.binary, err = filepath.Abs(d.binary); err != nil {
		return err
	}
	if d.agent, err = d.rig.NewAgent(d.binary); err != nil {
		return err
	}
	if err := os.CopyFS(d.agent.Manifests, os.DirFS(d.source)); err != nil {
		return fmt.Errorf("copy the manifests: %w", err)
	}
	say("starting monopod on the manifests of %s", d.source)
	return d.agent.Start(ctx)
}

// watch prints `monopod ps` whenever it changed, until every pod is where it shall be.
func (d *demo) watch(ctx context.Context) error {
	last, ages := "", regexp.MustCompile(` *\(?[0-9]+[smhd][0-9smhd]*( ago\))?`) // they alone are no news
	return rig.Until(ctx, settleLimit, func() error {
		if err := d.agent.Healthy(ctx); err != nil {
			return err
		}
		out, err := d.agent.Says(ctx, "ps")
		if err != nil {
			return err
		}
		settled := d.settled(ctx)
		if now := ages.ReplaceAllString(out, ""); now != last {
			say("\n$ monopod ps\n%s", strings.TrimSpace(out))
			last = now
		}
		return settled
	})
}

// settled returns nil when the web server answers, the job has succeeded and the
// crashing pod was restarted.
func (d *demo) settled(ctx context.Context) error {
	pods, err := d.agent.Pods(ctx)
	if err != nil {
		return err
	}
	byName := map[string]v1.PodStatus{}
	for _, p := range pods {
		byName[p.Name] = p.Status
	}
	web, job, crash := byName["web-"+rig.Node], byName["job-"+rig.Node], byName["crash-"+rig.Node]
	switch {
	case web.Phase != v1.PodRunning:
		return errors.New("the web server does not run")
	case job.Phase != v1.PodSucceeded:
		return errors.New("the job has not succeeded")
	case len(crash.ContainerStatuses) == 0 || crash.ContainerStatuses[0].RestartCount == 0:
		return errors.New("the crashing pod was not restarted")
	}
	_, err = fetch(ctx, web.PodIP)
	return err
}

// fetch gets the page of the web pod.
func fetch(ctx context.Context, ip string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/", ip, webPort), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the web server says %s", resp.Status)
	}
	return string(b), err
}

// explain tells what to try now.
func (d *demo) explain(ctx context.Context) {
	ip := "POD-IP"
	if pods, err := d.agent.Pods(ctx); err == nil {
		for _, p := range pods {
			if p.Name == "web-"+rig.Node {
				ip = p.Status.PodIP
			}
		}
	}
	a := d.agent
	say(`
Three pods run (or have run). Try, in another terminal:

  %[1]s ps --socket %[2]s
  curl http://%[3]s:%[4]d/
  curl --unix-socket %[2]s http://monopod/pods

  cd %[5]s
  sed -i s/hello/goodbye/ web.yaml       # edit: the pod is replaced
  rm job.yaml                            # remove: the pod goes
  echo 'oops' > web.yaml                 # break: the pod runs on, ps says what is wrong

Status files  %[6]s/status
Pod logs      %[7]s
monopod's log %[8]s

Ctrl-C ends the demo and removes everything.
`, a.Binary, a.Socket, ip, webPort, a.Manifests, a.Root, a.PodLogs, a.Log)
}
