package documents

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
)

// Whatever a person writes for the kind of a Secret, what is wrong is said without values.
func TestWhatIsAlmostASecretIsSaidWithoutValues(t *testing.T) {
	const value = "90817263554"
	kinds := []string{"kind: Secret", "kind: secret", "kind: SECRET", "kind: Secrets", "kind: Sercet", "Kind: Secret", "KIND : Secret", `"kind": "Secret"`,
		"kind: !!str Secret", "kind: &k Secret", "kind: 'Secret '", "kind: >-\n  Secret", "kind:\n  Secret", `kind: "\x53ecret"`, `"\x6bind": Secret`, "? kind\n: Secret",
		"kind: SealedSecret", "kind: SecretList", "kind: Secretmap", "kind: Secret # of the db", "knid: Secret", "# kind: Pod", "", "kind:", "kind: Pod\nkind: Secret", "kind: Secret\nkind: Pod",
		"kind: Secr\net"}
	bodies := []string{"stringData: {p: %s}", "stringData: {p: *%s}", "stringData: {p: !!int %sx}", "stringData: {p: %[1]s, p: %[1]s}", "stringData: {%s: x}", "stringData:\n  %s:\n    - x",
		"stringData:\n  p: %s: x", "stringData:\n  p: @%s", "stringData: %s", "stringData: {p: '%s}", "stringdata: {p: %s}", "stringData:\n  p:%s", "stringData: {p: [%s]}", "%s: x",
		"data: {p: *%s}", "data: {p: %s}", "data: {p: [%s]}", "data: %s", "data: {p: !!float %sx}", "data: {<<: %s}", "data: {? [%s] : x}", "metadata: %s", "type: [%s]"}
	wrong := 0
	for _, kind := range kinds {
		for _, body := range bodies {
			body = fmt.Sprintf(body, value)
			for shape, text := range map[string]string{
				"alone":       "apiVersion: v1\n" + kind + "\nmetadata: {name: s}\n" + body + "\n",
				"with a mark": "\ufeffapiVersion: v1\n" + kind + "\nmetadata: {name: s}\n" + body + "\n",
				"in UTF-16":   asUTF16("apiVersion: v1\n" + kind + "\nmetadata: {name: s}\n" + body + "\n"),
				"in a List":   "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  " + indented(kind) + "\n  metadata: {name: s}\n  " + indented(body) + "\n",
				"unfinished":  "apiVersion: v1\n" + kind + "\nmetadata: {name: s\n" + body + "\n",
				"beside a pod": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n" + body + "\n---\napiVersion: v1\n" +
					kind + "\nmetadata: {name: s}\n",
			} {
				for _, p := range Read("/m/s.yaml", []byte(text), Options{NodeName: "n"}).Problems {
					if wrong++; strings.Contains(p.Error(), value[:8]) {
						t.Errorf("%s, %q, %q: %s", shape, kind, body, p.Error())
					}
				}
			}
		}
	}
	if wrong < 1000 {
		t.Errorf("only %d problems", wrong)
	}
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

func asUTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// A file that may be quoted still is: what a person needs to find the place.
func TestAFileWithoutASecretIsQuoted(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a pod that uses one", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {volumes: [{name: v, secret: {secretName: A_b}}], containers: [{name: c, image: i, env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}\n", `"A_b"`},
		{"JSON in an annotation", "apiVersion: v1\nkind: Pod\nmetadata: {name: P_p, annotations: {last: '{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}'}}\nspec: {containers: [{name: c, image: i}]}\n", `"P_p`},
		{"a ConfigMap", configMap("data: {a: 4711}"), "4711"},
		{"ConfigMaps", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: m}\n  data: {a: 4711}\n", "4711"},
		{"a kind of a slip", "apiVersion: v1\nkind: Pdo\nmetadata: {name: p}\n", "Pdo"},
		{"a kind of others", "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: p}\n", "Certificate"},
	} {
		if got := strings.Join(said(row.text), "\n"); !strings.Contains(got, row.want) {
			t.Errorf("%s: %q does not say %s", row.name, got, row.want)
		}
	}
}

// What the words cannot say without the file they say how to find out.
func TestWhatCannotBeSaidBesideASecretSaysTheRemedy(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, imagePullPolicy: hunter2}]}\n"
	got := strings.Join(said(secret()+"---\n"+pod), "\n")
	if want := `Secret default/x` + "\n" + `9:58 spec.containers[0].imagePullPolicy: Unsupported value: supported values: "Always", "IfNotPresent", "Never"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Random slips of the pen in Secrets, each with the same seed: no value in any problem.
func TestSlipsInSecretsQuoteNoValue(t *testing.T) {
	const plain, number = "hunter2ZQXvalue", "90817263554"
	marks := regexp.MustCompile(`(?i)90817263554|unter2ZQX|ZQXvalue|9081726`)
	seeds := []string{
		secret("stringData:\n  password: "+number, "  other: "+plain),
		secret("type: Opaque", "data:\n  tls.key: |\n    "+number+"\n    "+plain),
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "` + plain + `", "b": ` + number + `, "d": {"e": "` + plain + `"}}}` + "\n",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  stringData: {p: " + plain + "}\n",
		"kind: \"Secret\"\napiVersion: v1\nmetadata: {name: s}\nstringData:\n  a: &x " + plain + "\n  b: *x\n  <<: {c: " + number + "}\n",
		secret("stringData:", "  a: >-\n   "+plain+"\n   "+number) + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n",
	}
	slips := []string{":", "\t", "\n", " ", "'", "\"", "{", "}", "[", "]", "- ", "*", "&a ", "!!int ", "%", "@", "`", "|", ">", "#", "?", "\x00", "\xff", "---\n", "<<: ", ",", "\r"}
	r := rand.New(rand.NewPCG(7, 11))
	for range 4000 {
		text := seeds[r.IntN(len(seeds))]
		for range 1 + r.IntN(3) {
			at := r.IntN(len(text))
			if m := marks.FindStringIndex(text); m != nil && r.IntN(3) == 0 {
				at = m[r.IntN(2)]
			}
			switch r.IntN(4) {
			case 0:
				text = text[:at] + text[min(len(text), at+1+r.IntN(4)):]
			case 1: // a line again, in place of another
				lines := strings.SplitAfter(text, "\n")
				lines[r.IntN(len(lines))] = lines[r.IntN(len(lines))]
				text = strings.Join(lines, "")
			default:
				text = text[:at] + slips[r.IntN(len(slips))] + text[at:]
			}
			text += "\n"
		}
		c := Read("/m/s.yaml", []byte(text), Options{NodeName: "n"})
		for _, p := range c.Problems {
			if marks.MatchString(p.Error()) {
				t.Errorf("%s\nof %q", p.Error(), text)
			}
		}
		if len(c.Faults) > 0 {
			t.Errorf("%s\nof %q", c.Faults[0], text)
		}
	}
}
