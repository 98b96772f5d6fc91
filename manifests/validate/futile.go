package validate

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/defaults"
)

// The checks in this file warn of what a kubelet accepts although it can only fail.

// futile warns of settings with which a container cannot start on any machine.
func (c *checker) futile(p *field.Path, ct *v1.Container) {
	c.program(p.Child("command"), ct.Command, "the container cannot start")
	c.nonRoot(p, ct)
	c.zeroBytes(p, ct)
	for i := range ct.VolumeMounts {
		c.subPathVariables(p, ct, p.Child("volumeMounts").Index(i).Child("subPathExpr"), ct.VolumeMounts[i].SubPathExpr)
	}
}

// logFolder warns of a pod for whose logs no folder can be made: the folder has the pod's namespace,
// name and uid in its name, as a kubelet's.
func (c *checker) logFolder(p *field.Path) {
	pod := c.pod
	has, most := len(pod.Namespace)+len(pod.Name)+len(pod.UID), maxFileName-len("__")
	if has > most && c.read(p.Child("name"), p.Child("namespace"), p.Child("uid")) && !c.faulty(p.Child("name")) {
		c.warn(p.Child("name"), fmt.Sprintf("name, namespace and uid have %d bytes together, and the folder of the pod's logs, which they name, "+
			"has room for %d: the pod never starts; shorten the name", has, most))
	}
}

// relativeHostPath warns of a path of the machine that does not begin at its root: runtimes mount
// none such.
func (c *checker) relativeHostPath(p *field.Path, path string) {
	if !strings.HasPrefix(path, "/") {
		c.warn(p, "a path of the machine begins with /: no container that mounts the volume can start")
	}
}

// program warns of a command without a program.
func (c *checker) program(p *field.Path, command []string, effect string) {
	if len(command) > 0 && command[0] == "" {
		c.warn(p.Index(0), "the first word is the program to run, and is empty: "+effect)
	}
}

// zeroBytes warns of zero bytes in what the kernel is given: most runtimes refuse them, the others
// cut the text there.
func (c *checker) zeroBytes(p *field.Path, ct *v1.Container) {
	check := func(p *field.Path, text string) {
		if strings.ContainsRune(text, 0) && !c.faulty(p) {
			c.warn(p, "a text ends at a zero byte for the kernel: the container cannot start, or gets what stands before it")
		}
	}
	for i := range ct.Command {
		check(p.Child("command").Index(i), ct.Command[i])
	}
	for i := range ct.Args {
		check(p.Child("args").Index(i), ct.Args[i])
	}
	for i := range ct.Env {
		check(p.Child("env").Index(i).Child("value"), ct.Env[i].Value)
	}
	for i := range ct.VolumeMounts {
		check(p.Child("volumeMounts").Index(i).Child("mountPath"), ct.VolumeMounts[i].MountPath)
		check(p.Child("volumeMounts").Index(i).Child("subPath"), ct.VolumeMounts[i].SubPath)
	}
	check(p.Child("workingDir"), ct.WorkingDir)
}

// nonRoot warns of a container with user 0 that must not run as root.
func (c *checker) nonRoot(p *field.Path, ct *v1.Container) {
	pod, own := c.spec.SecurityContext, ct.SecurityContext
	if own == nil {
		own = &v1.SecurityContext{}
	}
	must, user, at := pod.RunAsNonRoot, pod.RunAsUser, field.NewPath("spec")
	for _, of := range []*field.Path{at, p} {
		if !c.read(of.Child("securityContext", "runAsNonRoot"), of.Child("securityContext", "runAsUser")) {
			return
		}
	}
	if own.RunAsNonRoot != nil {
		must = own.RunAsNonRoot
	}
	if own.RunAsUser != nil {
		user, at = own.RunAsUser, p
	}
	if isTrue(must) && user != nil && *user == 0 {
		c.warn(at.Child("securityContext", "runAsUser"), "0 is root, and runAsNonRoot is true: "+
			"the container is never created; give another user, or set runAsNonRoot to false")
	}
}

// subPathVariables warns of variables in a path that have no value.
func (c *checker) subPathVariables(p *field.Path, ct *v1.Container, at *field.Path, path string) {
	if path == "" || len(ct.EnvFrom) > 0 || !c.read(p.Child("env"), p.Child("envFrom")) {
		return
	}
	values := map[string]bool{}
	for _, e := range ct.Env {
		values[e.Name] = true
		if e.Value == "" && e.ValueFrom == nil {
			delete(values, e.Name)
		}
	}
	for piece := range decode.Pieces(path) {
		if piece.Ref && !values[piece.Name] {
			const never = " the container is never created"
			c.warnQuoting(at, decode.Message{Full: fmt.Sprintf("the container has no variable %q with a value%s%s",
				decode.Clip(piece.Name), meant(piece.Name, values, ";"), never),
				Plain: "the container has no such variable with a value;" + never})
			return
		}
	}
}

// meant returns a question for the most likely name; otherwise if there is none.
func meant(name string, known map[string]bool, otherwise string) string {
	if near := decode.Nearest(name, known); near != "" {
		return fmt.Sprintf(": did you mean %q? As it is,", near)
	}
	return otherwise
}

// futileHandler warns of a probe or a hook without a program or port. p is the field of the
// container, q its own.
func (c *checker) futileHandler(p, q *field.Path, ct *v1.Container, h v1.ProbeHandler, effect string) {
	if h.Exec != nil {
		c.program(q.Child("exec", "command"), h.Exec.Command, effect)
	}
	if !c.read(p.Child("ports")) {
		return
	}
	if h.HTTPGet != nil {
		c.namedPort(q.Child("httpGet", "port"), h.HTTPGet.Port, ct, effect)
	}
	if h.TCPSocket != nil {
		c.namedPort(q.Child("tcpSocket", "port"), h.TCPSocket.Port, ct, effect)
	}
}

// namedPort warns of a port's name that the container does not have.
func (c *checker) namedPort(p *field.Path, port intstr.IntOrString, ct *v1.Container, effect string) {
	names := map[string]bool{}
	for _, cp := range ct.Ports {
		names[cp.Name] = true
	}
	if port.Type == intstr.String && !names[port.StrVal] && !c.faulty(p) {
		const remedy = ": give the number, or name a port so;"
		c.warnQuoting(p, decode.Message{Full: fmt.Sprintf("the container has no port named %q%s %s",
			decode.Clip(port.StrVal), meant(port.StrVal, names, remedy), effect),
			Plain: "the container has no port of this name" + remedy + " " + effect})
	}
}

// memoryLimit warns of a limit below one page of memory.
func (c *checker) memoryLimit(p *field.Path, limit resource.Quantity) {
	const page = 4096 // the smallest of all Linux architectures
	if limit.Sign() > 0 && limit.CmpInt64(page) < 0 {
		less := fmt.Sprintf("less than a page of memory, %d bytes: nothing can run in it; m means thousandths, Mi means 1048576", page)
		c.warnQuoting(p, decode.Message{Full: limit.String() + " is " + less, Plain: less})
	}
}

// hostPorts warns of host ports that two containers of the pod use.
func (c *checker) hostPorts() {
	type taken struct {
		by   *field.Path
		port defaults.HostPort
	}
	before := map[int32][]taken{} // by number
	for p, h := range defaults.HostPorts(c.spec) {
		if !c.read(p.Child("hostPort"), p.Child("containerPort"), p.Child("hostIP"), p.Child("protocol")) {
			continue
		}
		for _, t := range before[h.Port] {
			if t.port.Overlaps(h) && !c.faulty(p.Child("hostPort")) {
				remedy := fmt.Sprintf("that of %s already: only one of the two can have it; give one of them another port", t.by)
				c.warnQuoting(p.Child(defaults.HostPortField(c.spec)), decode.Message{
					Full: fmt.Sprintf("%s port %d of the machine is %s", h.Protocol, h.Port, remedy), Plain: "the port of the machine is " + remedy})
				break
			}
		}
		before[h.Port] = append(before[h.Port], taken{p, h})
	}
}

// otherNode warns of a pod whose nodeName is another machine.
func (c *checker) otherNode(p *field.Path) {
	if name := strings.TrimSpace(c.NodeName); name != "" && !strings.EqualFold(name, c.spec.NodeName) {
		other, here := decode.Clip(name), fmt.Sprintf("the pod runs here, on node %q, ", c.spec.NodeName)
		c.warnQuoting(p, decode.Message{
			Full:  fmt.Sprintf("%sand not on %q: a pod runs where its file is; remove nodeName, or move the file to %[2]q", here, other),
			Plain: here + "and not on another: a pod runs where its file is; remove nodeName, or move the file"})
	}
}
