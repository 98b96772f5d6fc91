package podspec

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestTheContainersOfAPod(t *testing.T) {
	hook := &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}
	p := specPod(func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "hooked", Lifecycle: &v1.Lifecycle{PostStart: hook}}}
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other", Lifecycle: &v1.Lifecycle{}})
	})
	for _, row := range []struct {
		name         string
		init, hooked bool
	}{{"init", true, false}, {"hooked", true, true}, {"main", false, false}, {"other", false, false}} {
		c := FindContainer(p, row.name)
		if c.Name != row.name || IsInit(p, c) != row.init || (PostStart(c) == hook) != row.hooked {
			t.Errorf("%s: found %s, init %v, hook %v", row.name, c.Name, IsInit(p, c), PostStart(c))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a container is found that the pod has not")
		}
	}()
	FindContainer(p, "none")
}

func TestTheRestartRuleOfAnExitCode(t *testing.T) {
	rule := func(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}
	}
	in, notIn := v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn
	c := &v1.Container{RestartPolicyRules: []v1.ContainerRestartRule{{Action: "without codes"}, rule("first", in, 3, 4), rule("second", in, 4, 5), rule("third", notIn, 0, 5, 6)}}
	for code, want := range map[int32]v1.ContainerRestartRuleAction{3: "first", 4: "first", 5: "second", 6: "", 0: "", 7: "third"} {
		if got := RestartRule(c, code); got != want {
			t.Errorf("exit code %d: %q, want %q", code, got, want)
		}
	}
}

func TestAPodMayHaveUsersOfItsOwn(t *testing.T) {
	for _, row := range []struct {
		host *bool
		want bool
	}{{nil, false}, {new(true), false}, {new(false), true}} {
		if got := OwnUsers(specPod(func(p *v1.Pod) { p.Spec.HostUsers = row.host })); got != row.want {
			t.Errorf("%v: %v", row.host, got)
		}
	}
}
