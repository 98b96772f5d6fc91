//go:build e2e

// Package page looks at the pages with a real browser.
package page

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// callTimeout bounds one request to the browser.
const callTimeout = 30 * time.Second

// fonts has the browser use the fonts of Debian's fonts-liberation2 alone, so that pictures do not
// depend on what else a machine has.
const fonts = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts/truetype/liberation</dir><dir>/usr/share/fonts/truetype/liberation2</dir><cachedir>%s</cachedir></fontconfig>`

// browser is a headless Chromium that is asked through a pipe (the DevTools protocol).
type browser struct {
	cmd *exec.Cmd
	to  *os.File

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromium starts a browser for the length of a test.
func chromium(t *testing.T) *browser {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium-") // short, as paths of sockets must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "fonts.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, fonts, filepath.Join(dir, "fonts")), 0o600); err != nil {
		t.Fatal(err)
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{to: to, answers: map[int]chan answer{}}
	b.cmd = exec.Command("chromium", "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
		"--hide-scrollbars", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb", "about:blank")
	b.cmd.Env = append(os.Environ(), "FONTCONFIG_FILE="+config, "HOME="+dir, "TMPDIR="+dir)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = b.cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatalf("start Chromium: %v: install Debian's package chromium", err)
	}
	go b.listen(from)
	t.Cleanup(func() {
		b.close()
		to.Close()
		from.Close()
	})
	return b
}

// close ends the browser, and all processes that it has started.
func (b *browser) close() {
	_ = b.call("", "Browser.close", nil, nil) // it may be gone before it answers
	const slow = 5 * time.Second
	kill := func() { _ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) }
	late := time.AfterFunc(slow, kill)
	_ = b.cmd.Wait()
	late.Stop()
	kill()
}

// listen hands out the answers until the browser ends.
func (b *browser) listen(from *os.File) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		data, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(data[:len(data)-1], &a) != nil || a.ID == 0 {
			continue // an event
		}
		b.mu.Lock()
		to := b.answers[a.ID]
		delete(b.answers, a.ID)
		b.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
}

// call sends a request, of a session unless that is "", and decodes the result into out.
func (b *browser) call(session, method string, params map[string]any, out any) error {
	b.mu.Lock()
	b.last++
	id, to := b.last, make(chan answer, 1)
	b.answers[id] = to
	b.mu.Unlock()
	request := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		request["sessionId"] = session
	}
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(data, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	select {
	case a := <-to:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(a.Result, out)
	case <-ctx.Done():
		return fmt.Errorf("%s: the browser did not answer within %s", method, callTimeout)
	}
}

// tab is a page in the browser.
type tab struct {
	*testing.T
	browser *browser
	session string
}

// open opens a page in a tab of so many pixels.
func (b *browser) open(t *testing.T, url string, width, height int, scheme string) *tab {
	t.Helper()
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	if err == nil {
		err = b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &tab{t, b, session.SessionID}
	t.Cleanup(func() { _ = b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil) }) // the browser goes, too
	p.call("Page.enable", nil, nil)
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": watch}, nil)
	p.visit(url)
	return p
}

// watch keeps what a page does wrong in window.wrong.
const watch = `window.wrong = [];
addEventListener('securitypolicyviolation', e => wrong.push('the policy forbids ' + e.violatedDirective + ' ' + e.blockedURI));
addEventListener('error', e => wrong.push(e.message));
addEventListener('unhandledrejection', e => wrong.push(String(e.reason)));`

func (p *tab) call(method string, params map[string]any, out any) {
	p.Helper()
	if err := p.browser.call(p.session, method, params, out); err != nil {
		p.Fatal(err)
	}
}

// visit loads a page.
func (p *tab) visit(url string) {
	p.Helper()
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	p.until(10*time.Second, "location.href === "+quoted(url)+" && document.readyState === 'complete'")
}

// eval returns the value of an expression in the page, also of a promise.
func (p *tab) eval(expression string, out any) {
	p.Helper()
	if err := p.tryEval(expression, out); err != nil {
		p.Fatal(err)
	}
}

func (p *tab) tryEval(expression string, out any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.browser.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return errors.New(got.ExceptionDetails.Text + " " + got.ExceptionDetails.Exception.Description)
	case out == nil:
		return nil
	}
	return json.Unmarshal(got.Result.Value, out)
}

// until waits until an expression is true, and returns how long that took.
func (p *tab) until(most time.Duration, expression string) time.Duration {
	p.Helper()
	start := time.Now()
	for {
		var is bool
		if p.tryEval(expression, &is) == nil && is {
			return time.Since(start)
		}
		if time.Since(start) > most {
			p.Fatalf("after %s this is not so: %s", most, expression)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// shot returns a PNG of the whole page.
func (p *tab) shot() []byte {
	p.Helper()
	var got struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": false}, &got)
	data, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		p.Fatal(err)
	}
	return data
}

func quoted(text string) string {
	data, _ := json.Marshal(text) // a string always encodes
	return string(data)
}
