package client

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
)

// kinds maps the words for kinds of objects to the agent's names for them.
var kinds = map[string]string{"configmap": "configmap", "configmaps": "configmap", "cm": "configmap", "secret": "secret", "secrets": "secret"}

// forgotten is a pod or object to forget.
type forgotten struct{ path, text string }

// Forget accepts the removal of pods and objects that no manifest gives any more, one after the
// other. Pods are removed from then on, with their grace period, which it does not wait for.
func Forget(ctx context.Context, o Request) error {
	pods, err := o.pods(ctx, "")
	if err != nil {
		return err
	}
	var all []forgotten
	for _, name := range o.Choice.Names { // all names first: if one is wrong, nothing is forgotten
		one, err := o.forgets(pods, name)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	for _, one := range all {
		if _, err := post(ctx, sendTimeout, o.Socket, "/forget/"+one.path); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(o.Out, one.text); err != nil {
			return err
		}
	}
	return nil
}

// forgets returns the object of a name. A pod in a namespace that is named like a kind of objects
// requires -n.
func (o Request) forgets(pods []v1.Pod, name string) (forgotten, error) {
	word, object, _ := strings.Cut(name, "/")
	kind := kinds[strings.ToLower(word)]
	if kind == "" || !strings.Contains(name, "/") {
		p, err := FindPod(pods, name, o.Choice.Namespace)
		if err != nil {
			return forgotten{}, err
		}
		return forgotten{p.Namespace + "/" + p.Name,
			fmt.Sprintf("pod %s/%s is forgotten and is being removed", p.Namespace, print.ShortName(p))}, nil
	}
	namespace, object, both := strings.Cut(object, "/")
	if !both {
		namespace, object = cmp.Or(o.Choice.Namespace, v1.NamespaceDefault), namespace
	}
	if namespace == "" || object == "" || strings.Contains(object, "/") {
		return forgotten{}, fmt.Errorf("%q: an object is meant as in %s/NAME or %[2]s/NAMESPACE/NAME", name, word)
	}
	return forgotten{url.PathEscape(namespace) + "/" + kind + "/" + url.PathEscape(object),
		fmt.Sprintf("%s %s/%s is forgotten and counts as removed", kind, namespace, object)}, nil
}
