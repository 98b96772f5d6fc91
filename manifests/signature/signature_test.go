package signature

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
)

const list = "apiVersion: v1\nkind: List\nmetadata:\n  annotations: {monopod.serial: '7'}\nitems: []\n"

// says checks that an error begins with these words; "": there is none.
func says(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// made returns a new key by the way of its file.
func made(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, file, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParsePrivateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestASignatureIsOfOneContentByOneKey(t *testing.T) {
	key, other := made(t), made(t)
	bare := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(list)))
	for _, r := range []struct{ name, content, file, want string }{
		{"its own", list, string(Sign(key, []byte(list))), ""},
		{"its own without the end of the line", list, strings.TrimSpace(string(Sign(key, []byte(list)))), ""},
		{"of other content", list + "#", string(Sign(key, []byte(list))), "is not of this content by the key"},
		{"of content that is cut short", list[:len(list)-1], string(Sign(key, []byte(list))), "is not of this content"},
		{"by another key", list, string(Sign(other, []byte(list))), "is not of this content"},
		{"of the bytes without their domain", list, bare, "is not of this content"},
		{"empty", list, "", "is no line of base64"},
		{"a web page", list, "<!DOCTYPE html>", "is no line of base64"},
		{"a short one", list, "YWJj\n", "is no line of base64"},
	} {
		says(t, r.name, Verify(public(key), []byte(r.content), []byte(r.file)), r.want)
	}
	if err := Verify(public(key), nil, Sign(other, nil)); !errors.Is(err, ErrOther) {
		t.Error(err)
	}
}

// What the docs say of the format holds: openssl can make and verify it.
func TestTheFormatIsAsItIsDocumented(t *testing.T) {
	key := made(t)
	file := string(Sign(key, []byte(list)))
	text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(file, "\n"))
	if err != nil || len(file) != 89 || !ed25519.Verify(public(key), []byte("monopod-manifests-v1\n"+list), text) {
		t.Errorf("%q, %v", file, err)
	}
}

func TestThePublicKeyOfTheSettings(t *testing.T) {
	key := made(t)
	got, err := ParsePublicKey(" " + Text(public(key)) + "\n")
	if err != nil || !got.Equal(public(key)) {
		t.Error(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of, err := x509.MarshalPKIXPublicKey(&curve.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	secret := base64.StdEncoding.EncodeToString(private)
	for _, r := range []struct{ name, text, want string }{
		{"none", "", ""},
		{"an ed25519 key", Text(public(key)), ""},
		{"no base64", "/etc/fleet.pem", "is not the base64 of a public key: give the line that `monopod sign` prints"},
		{"the key's bytes alone", base64.StdEncoding.EncodeToString(public(key)), "is not the base64"},
		{"another type", base64.StdEncoding.EncodeToString(of), "is a public key of another type than ed25519"},
		{"the private key", secret, "is a private key, which belongs to whoever signs alone"},
	} {
		err := CheckPublicKey(r.text)
		says(t, r.name, err, r.want)
		if err != nil && strings.Contains(err.Error(), r.text) {
			t.Errorf("%s: %v tells it", r.name, err)
		}
	}
}

func TestThePrivateKeyIsAnEd25519KeyInPEM(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	for _, r := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "holds no private key (PEM, PKCS #8): make one with --new-key"},
		{"a certificate", in("CERTIFICATE", der), "holds no private key"},
		{"broken", in("PRIVATE KEY", der[:9]), "holds a private key that cannot be read"},
		{"another type", in("PRIVATE KEY", der), "holds a private key of another type than ed25519"},
	} {
		_, err := ParsePrivateKey(r.file)
		says(t, r.name, err, r.want)
	}
}

func TestTheStampIsInTheAnnotationsOfTheList(t *testing.T) {
	with := func(annotations string) string {
		return "# fleet\n---\nkind: List\nmetadata: {annotations: {" + annotations + "}}\nitems: []\n---\nkind: Secret\n"
	}
	for _, r := range []struct {
		name, content string
		stamp         Stamp
		want          string
	}{
		{"a serial", with("monopod.serial: '7'"), Stamp{7, ""}, ""},
		{"a serial without quotes", with("monopod.serial: 20261126"), Stamp{20261126, ""}, ""},
		{"the highest", with("monopod.serial: 9223372036854775807"), Stamp{9223372036854775807, ""}, ""},
		{"with a node", with("monopod.serial: 7, monopod.node: edge7"), Stamp{7, "edge7"}, ""},
		{"JSON", `{"metadata":{"annotations":{"monopod.serial":"7"}}}`, Stamp{7, ""}, ""},
		{"none", "kind: List\nitems: []\n", Stamp{}, "has no serial number: write the annotation monopod.serial into the metadata of a List"},
		{"in the second document", "kind: List\n---\n" + list, Stamp{}, "has no serial number"},
		{"nothing but comments", "# none\n", Stamp{}, "has no serial number"},
		{"no number", with("monopod.serial: secret"), Stamp{}, "line 4: monopod.serial must be a whole number from 1 to 9223372036854775807"},
		{"too large a number", with("monopod.serial: 9223372036854775808"), Stamp{}, "line 4: monopod.serial must be"},
		{"zero", with("monopod.serial: 0"), Stamp{}, "line 4: monopod.serial must be"},
		{"a negative one", with("monopod.serial: -1"), Stamp{}, "line 4: monopod.serial must be"},
		{"a list", with("monopod.serial: [7]"), Stamp{}, "line 4: monopod.serial is no text"},
		{"an empty node", with("monopod.serial: 7, monopod.node: ''"), Stamp{}, "line 4: monopod.node is empty"},
		{"a slip in the node's name", with("monopod.serial: 7, monopod.nodes: edge7"), Stamp{}, `line 4: an annotation of its List is unknown: did you mean "monopod.node"?`},
		{"a slip in monopod", with("monopod.serial: 7, monpod.node: edge7"), Stamp{}, `line 4: an annotation of its List is unknown: did you mean "monopod.node"?`},
		{"capitals", with("monopod.serial: 7, Monopod.Node: edge7"), Stamp{}, `line 4: an annotation of its List is unknown: did you mean "monopod.node"?`},
		{"a name that means nothing", with("monopod.serial: 7, monopod.secret: x"), Stamp{}, "line 4: an annotation of its List is unknown: it may have monopod.serial and monopod.node"},
		{"one of a pod, which has no effect", with("monopod.serial: 7, monopod.update: replace"), Stamp{7, ""}, ""},
		{"one of another program", with("monopod.serial: 7, monod.example.com/node: x"), Stamp{7, ""}, ""},
		{"no YAML", "kind: [\n", Stamp{}, "line 1: its List cannot be read: "},
		{"no mapping", "- a\n", Stamp{}, "has no serial number"},
	} {
		s, err := ReadStamp([]byte(r.content))
		says(t, r.name, err, r.want)
		if err == nil && s != r.stamp || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", r.name, s, err)
		}
	}
}

// monopod.node is the only node that takes the list, however YAML writes it: a stamp that is not read must not be "any node".
func TestTheNodeOfAListIsWhatYAMLSays(t *testing.T) {
	for name, content := range map[string]string{
		"a merge key":       "kind: List\nmetadata:\n  labels: &c {monopod.node: edge7}\n  annotations:\n    <<: *c\n    monopod.serial: '7'\nitems: []\n",
		"an alias as a key": "kind: List\nmetadata:\n  name: &n monopod.node\n  annotations:\n    *n : edge7\n    monopod.serial: '7'\nitems: []\n",
		"escapes":           `{"kind":"List","metadata":{"annotations":{"monopod\u002enode":"edge7","monopod.serial":"7"}},"items":[]}`,
		"tabs":              "{\n\t\"kind\": \"List\",\n\t\"metadata\": {\"annotations\": {\"monopod.node\": \"edge7\",\n\t\"monopod.serial\": \"7\"}},\n\t\"items\": []\n}",
		"a BOM":             "\ufeffkind: List\nmetadata: {annotations: {monopod.node: edge7, monopod.serial: '7'}}\nitems: []\n",
		"CRLF":              "kind: List\r\nmetadata:\r\n  annotations:\r\n    monopod.node: edge7\r\n    monopod.serial: '7'\r\nitems: []\r\n",
		"twice metadata":    "kind: List\nmetadata: {annotations: {monopod.node: edge7, monopod.serial: '7'}}\nmetadata: {annotations: {monopod.serial: '7'}}\nitems: []\n",
		"twice annotations": "kind: List\nmetadata: {annotations: {monopod.node: edge7}, annotations: {monopod.serial: '7'}}\nitems: []\n",
	} {
		s, err := ReadStamp([]byte(content))
		if err == nil && s.Node != "edge7" {
			t.Errorf("%s: for any node, serial %d", name, s.Serial)
		}
		if err != nil {
			t.Logf("%s: refused: %v", name, err)
		}
	}
}

// A serial number is digits: not with a sign, and none that YAML 1.1 reads as another number (010 is 8).
func TestASerialIsDigits(t *testing.T) {
	for _, serial := range []string{"'+7'", "010"} {
		if s, err := ReadStamp([]byte("kind: List\nmetadata: {annotations: {monopod.serial: " + serial + "}}\n")); err == nil {
			t.Errorf("%s: %d", serial, s.Serial)
		}
	}
}
