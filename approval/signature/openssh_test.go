package signature_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/approval/signature"
)

// kinds are the arguments of ssh-keygen that make each kind of key.
func kinds() map[string][]string {
	return map[string][]string{
		"ed25519": {"-t", "ed25519"}, "rsa": {"-t", "rsa", "-b", "2048"},
		"ecdsa": {"-t", "ecdsa", "-b", "256"}, "ecdsa521": {"-t", "ecdsa", "-b", "521"},
	}
}

func keygen(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("there is no ssh-keygen on this machine")
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

// makeKey makes a key pair with ssh-keygen and returns the private key's file and the public key.
func makeKey(t *testing.T, passphrase string, kind ...string) (string, ssh.PublicKey) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := keygen(t, "", append(kind, "-q", "-N", passphrase, "-C", "alice@desk", "-f", file)...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	key, comment, err := signature.ParseKey(string(line))
	if err != nil || comment != "alice@desk" {
		t.Fatalf("%q, %v", comment, err)
	}
	return file, key
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSSHKeygenVerifiesWhatWeSign(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, key := makeKey(t, "", kind...)
			signer, err := signature.Signer(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			const text = "what alice decides\x00\xff"
			armored, err := signature.Sign(signer, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			allowed := write(t, "allowed", "alice "+string(ssh.MarshalAuthorizedKey(key)))
			check := func(text, namespace string) error {
				out, err := keygen(t, text, "-Y", "verify", "-f", allowed, "-I", "alice", "-n", namespace,
					"-s", write(t, "sig", armored))
				t.Log(out)
				return err
			}
			if err := check(text, signature.Namespace); err != nil {
				t.Errorf("ssh-keygen refuses our signature: %v", err)
			}
			if check(text+".", signature.Namespace) == nil || check(text, "git") == nil {
				t.Error("ssh-keygen accepts our signature of something else")
			}
		})
	}
}

func TestWeVerifyWhatSSHKeygenSigns(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, key := makeKey(t, "", kind...)
			_, other := makeKey(t, "", "-t", "ed25519")
			const text = "what alice decides"
			sign := func(more ...string) string {
				in := write(t, "in", text)
				if out, err := keygen(t, "", append([]string{"-q", "-Y", "sign", "-f", file}, append(more, in)...)...); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				armored, err := os.ReadFile(in + ".sig")
				if err != nil {
					t.Fatal(err)
				}
				return string(armored)
			}
			armored := sign("-n", signature.Namespace)
			both := []ssh.PublicKey{other, key}
			for _, s := range []string{armored, sign("-n", signature.Namespace, "-O", "hashalg=sha256"), "\n" + armored + "\r\n"} {
				if got, err := signature.Verify([]byte(text), s, both); err != nil || !bytes.Equal(got.Marshal(), key.Marshal()) {
					t.Errorf("got %v, %v", got, err)
				}
			}
			refused := map[string]struct {
				text, armored string
				keys          []ssh.PublicKey
			}{
				"something else":  {text + " ", armored, both},
				"another key":     {text, armored, both[:1]},
				"another purpose": {text, sign("-n", "git"), both},
			}
			for want, c := range refused {
				if _, err := signature.Verify([]byte(c.text), c.armored, c.keys); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestAKeyWithAPassphraseOpensWithIt(t *testing.T) {
	t.Parallel()
	file, key := makeKey(t, "secret", "-t", "ed25519")
	phrase := func(p string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(p), nil }
	}
	s, err := signature.Signer(file, phrase("secret"))
	if err != nil || string(s.PublicKey().Marshal()) != string(key.Marshal()) {
		t.Fatalf("%v", err)
	}
	if _, err := signature.Signer(file, phrase("wrong")); err == nil || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("wrong passphrase: %v", err)
	}
	if _, err := signature.Signer(file, nil); err == nil || !strings.Contains(err.Error(), "ssh-agent") {
		t.Errorf("no passphrase: %v", err)
	}
}

func TestTheAgentSignsForAPublicKey(t *testing.T) {
	program, err := exec.LookPath("ssh-agent")
	if err != nil {
		t.Skip("there is no ssh-agent on this machine")
	}
	dir, err := os.MkdirTemp("", "hf") //nolint:usetesting // a socket's path is at most about 100 bytes, and t.TempDir's can be longer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	agent := exec.CommandContext(t.Context(), program, "-D", "-a", socket)
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil { // it says its socket when it listens
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)

	for name, kind := range kinds() {
		file, key := makeKey(t, "", kind...)
		if _, err := signature.Sign(signer(t, file+".pub"), []byte("x")); err == nil {
			t.Errorf("%s: the agent signs with a key that it does not have", name)
		}
		add := exec.CommandContext(t.Context(), "ssh-add", "-q", file)
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, path := range []string{file + ".pub", "agent"} {
			armored, err := signature.Sign(signer(t, path), []byte("x"))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := signature.Verify([]byte("x"), armored, []ssh.PublicKey{key}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "ssh-add", "-q", "-D").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := signature.Signer("agent", nil); err == nil || !strings.Contains(err.Error(), "0 keys") {
		t.Errorf("an empty agent: %v", err)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	if _, err := signature.Signer("agent", nil); err == nil || !strings.Contains(err.Error(), "SSH_AUTH_SOCK") {
		t.Errorf("no agent: %v", err)
	}
}

func signer(t *testing.T, path string) ssh.Signer {
	t.Helper()
	s, err := signature.Signer(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
