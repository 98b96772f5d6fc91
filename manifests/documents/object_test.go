package documents

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// said renders what a file gives: its objects, then its problems.
func said(text string) (out []string) {
	c := Read("/m/a.yaml", []byte(text), Options{NodeName: "n", NameSuffix: true})
	for _, o := range c.Objects {
		out = append(out, o.String())
	}
	for _, p := range c.Problems {
		line := fmt.Sprintf("%d:%d %s: %s", p.Line, p.Column, p.Field, p.Message)
		if p.Warning {
			line = "~" + line
		}
		out = append(out, line)
	}
	return out
}

const head = "apiVersion: v1\nkind: %s\nmetadata: {name: x}\n"

func configMap(lines ...string) string {
	return fmt.Sprintf(head, "ConfigMap") + strings.Join(lines, "\n") + "\n"
}

func secret(lines ...string) string {
	return fmt.Sprintf(head, "Secret") + strings.Join(lines, "\n") + "\n"
}

func TestObjectsAreReadAndChecked(t *testing.T) {
	const map1, secret1 = "ConfigMap default/x", "Secret default/x"
	large := strings.Repeat("x", 1<<20)
	rows := []struct{ name, file, want string }{
		{"a ConfigMap", configMap("data: {a: b, c.d_e-F: ''}", "binaryData: {bin: AAE=}", "immutable: true"), map1},
		{"an empty one", configMap(), map1},
		{"in a namespace", strings.Replace(configMap(), "{name: x}", "{name: x, namespace: prod}", 1), "ConfigMap prod/x"},
		{"a Secret", secret("data: {a: Yg==}", "stringData: {c: d}"), secret1},
		{"in lists", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n", "Secret default/a|ConfigMap default/b"},
		{"in a list of their own", "apiVersion: v1\nkind: SecretList\nitems:\n- {metadata: {name: a}}\n---\napiVersion: v1\nkind: ConfigMapList\nitems:\n- {metadata: {name: b}}\n", "Secret default/a|ConfigMap default/b"},
		{"no name", strings.Replace(configMap(), "{name: x}", "{}", 1), "3:1 metadata.name: Required value"},
		{"a wrong name", strings.Replace(configMap(), "{name: x}", "{name: X_y}", 1), `3:18 metadata.name: Invalid value: "X_y": a lowercase RFC 1123 subdomain`},
		{"a wrong namespace", strings.Replace(configMap(), "{name: x}", "{name: x, namespace: a.b}", 1), `3:32 metadata.namespace: Invalid value: "a.b": must not contain dots`},
		{"a wrong key", configMap("data: {a/b: c}"), `4:13 data[a/b]: invalid key "a/b": a valid config key must consist of`},
		{"a long key", configMap("data: {" + strings.Repeat("k", 254) + ": c}"), `4:264 data[`},
		{"a key twice", configMap("data: {a: b}", "binaryData: {a: AAE=}"), "5:17 binaryData[a]: data has this key, too"},
		{"too large", configMap("data: {a: " + large + ", b: c}"), "4:1 data: the values have 1048577 bytes together: at most 1048576 (1 MiB)"},
		{"as large as may be", configMap("data: {a: " + large + "}"), map1},
		{"a secret too large", secret("stringData: {a: " + large + ", b: c}"), "1:1 data: the values have 1048577 bytes"},
		{"an unknown field", configMap("dat: {a: b}"), `4:1 dat: unknown field "dat": did you mean "data"?`},
		{"a number in a ConfigMap", configMap("data: {a: 1}"), `4:11 data[a]: expected a string, got a number (1): put it in quotes, "1"`},
		{"no base64 in a ConfigMap", configMap("binaryData: {a: b!}"), "4:17 binaryData[a]: not valid base64: write plain text under stringData (of a Secret) or data (of a ConfigMap) instead"},
		{"twice in a file", configMap() + "---\n" + configMap("data: {a: b}"), map1 + "|8:18 metadata.name: ConfigMap default/x is given twice: line 1 of this file has it already"},
		{"a docker config", secret("type: kubernetes.io/dockerconfigjson", "stringData: {.dockerconfigjson: '{\"auths\": {}}'}"), secret1},
		{"a docker config without its key", secret("type: kubernetes.io/dockerconfigjson", "stringData: {a: b}"), "1:1 data: a Secret of type kubernetes.io/dockerconfigjson needs the key .dockerconfigjson"},
		{"a docker config that is no JSON", secret("type: kubernetes.io/dockerconfigjson", "stringData: {.dockerconfigjson: hunter2}"), "5:33 stringData: .dockerconfigjson is not a JSON object"},
		{"an old docker config", secret("type: kubernetes.io/dockercfg", "data: {.dockercfg: e30=}"), secret1},
		{"an old docker config that is no JSON", secret("type: kubernetes.io/dockercfg", "data: {.dockercfg: aHVudGVyMg==}"), "5:20 data: .dockercfg is not a JSON object"},
		{"a user without password", secret("type: kubernetes.io/basic-auth", "stringData: {username: a}"), secret1},
		{"neither", secret("type: kubernetes.io/basic-auth"), "1:1 data: a Secret of type kubernetes.io/basic-auth needs the key username or password"},
		{"a key without content", secret("type: kubernetes.io/ssh-auth", "stringData: {ssh-privatekey: ''}"), "1:1 data: a Secret of type kubernetes.io/ssh-auth needs the key ssh-privatekey"},
		{"half a certificate", secret("type: kubernetes.io/tls", "stringData: {tls.crt: ''}"), "1:1 data: a Secret of type kubernetes.io/tls needs the key tls.key"},
		{"a certificate", secret("type: kubernetes.io/tls", "stringData: {tls.crt: '', tls.key: ''}"), secret1},
		{"a token without an account", secret("type: kubernetes.io/service-account-token"), "3:1 metadata.annotations: a Secret of type kubernetes.io/service-account-token needs the annotation kubernetes.io/service-account.name"},
		{"a type of one's own", secret("type: mine", "data: {}"), secret1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, want := said(row.file), strings.Split(row.want, "|")
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got %.300q\nwant %.300q", got, want)
			}
		})
	}
}

// What is wrong with a Secret is said without its values, whatever is wrong.
func TestProblemsOfSecretsQuoteNoValue(t *testing.T) {
	const value = "hunter2"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	rows := []struct{ name, file, want string }{
		{"not base64", secret("data: {a: hunter2!}"), "4:11 data: not valid base64: write plain text under stringData"},
		{"data is text", secret("data: hunter2"), "4:7 data: expected an object, got a string"},
		{"a number", secret("stringData: {a: 4711}"), "4:17 stringData: expected a string, got a number: put it in quotes"},
		{"a number as data", secret("data: {a: 4711}"), "4:11 data: expected text in base64, got a number"},
		{"a list", secret("stringData: {a: [hunter2]}"), "4:14 stringData: expected a string, got a list"},
		{"an anchor", secret("stringData: {a: *hunter2}"), "4:17 : not valid YAML: no anchor has this name: put strings that begin with * in quotes"},
		{"no JSON", secret("type: kubernetes.io/dockercfg", "data: {.dockercfg: "+encoded+"}"), "5:20 data: .dockercfg is not a JSON object"},
		{"a tag", secret("stringData: {a: !!float hunter2}"), "4:17 stringData: put it in quotes, without a tag"},
		{"in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: hunter2!}}\n", "4:65 items[0].data: not valid base64"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := said(row.file)
			if len(got) != 1 || !strings.HasPrefix(got[0], row.want) {
				t.Errorf("got %q\nwant %q", got, row.want)
			}
			for _, line := range got {
				for _, hidden := range []string{value, encoded, "4711"} {
					if strings.Contains(line, hidden) {
						t.Errorf("a value is in %q", line)
					}
				}
			}
		})
	}
}

func TestStringDataWinsOverData(t *testing.T) {
	c := Read("/m/a.yaml", []byte(secret("data: {a: b2xk, b: b2xk}", "stringData: {a: new}")), Options{})
	if len(c.Objects) != 1 || string(c.Objects[0].Secret.Data["a"]) != "new" || string(c.Objects[0].Secret.Data["b"]) != "old" || c.Objects[0].Secret.StringData != nil {
		t.Errorf("%d objects", len(c.Objects))
	}
}

// A Secret that is printed by mistake shows its name.
func TestAnObjectPrintsAsItsName(t *testing.T) {
	o := Read("/m/a.yaml", []byte(secret("stringData: {a: hunter2}")), Options{}).Objects[0].Object
	for _, text := range []string{fmt.Sprint(o), fmt.Sprintf("%v", o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o)} {
		if text != "Secret default/x" {
			t.Errorf("it prints as %q", text)
		}
	}
}

func TestWhatAnImmutableObjectMayBecome(t *testing.T) {
	read := func(text string) *Object {
		return Read("/m/a.yaml", []byte(text), Options{}).Objects[0].Object
	}
	rows := []struct {
		name, from, to string
		may            bool
	}{
		{"other data", secret("data: {a: b2xk}"), secret(), true},
		{"immutable", secret(), secret("immutable: true"), true},
		{"the same", secret("immutable: true", "data: {a: b2xk}"), secret("stringData: {a: old}", "immutable: true"), true},
		{"no longer immutable", secret("immutable: true"), secret(), false},
		{"other data of an immutable Secret", secret("immutable: true"), secret("immutable: true", "data: {a: b2xk}"), false},
		{"other data of an immutable ConfigMap", configMap("immutable: true"), configMap("immutable: true", "data: {a: b}"), false},
		{"other labels", configMap("immutable: true"), strings.Replace(configMap("immutable: true"), "{name: x}", "{name: x, labels: {a: b}}", 1), true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if read(row.from).MayBecome(read(row.to)) != row.may {
				t.Errorf("want %v", row.may)
			}
		})
	}
}
