package signature_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/approval/signature"
)

func line(blob []byte, kind string) string {
	return kind + " " + base64.StdEncoding.EncodeToString(blob) + " a comment"
}

func TestOnlyKeysThatProveAPersonAreRead(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	good := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weakKey, err := ssh.NewPublicKey(&weak.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{Key: s.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice"}}
	if err := cert.SignCert(rand.Reader, s); err != nil {
		t.Fatal(err)
	}
	sk := ssh.Marshal(struct{ Type, Key, App string }{ssh.KeyAlgoSKED25519, string(public), "ssh:"})
	for _, in := range []string{good, "  " + good + " alice\n", line(sk, ssh.KeyAlgoSKED25519)} {
		if key, _, err := signature.ParseKey(in); err != nil || key == nil {
			t.Errorf("%.40q: %v", in, err)
		}
	}
	for in, want := range map[string]string{
		"":                                   "there is no key",
		"alice":                              "no SSH public key",
		"ssh-ed25519 AAAA":                   "no SSH public key",
		"ssh-rsa " + strings.Fields(good)[1]: "no SSH public key", // of another type than it says
		good + "\n" + good:                   "more than one line",
		`command="x" ` + good:                "option",
		strings.Repeat("x", 1<<20):           "at most",
		"-----BEGIN OPENSSH PRIVATE KEY-":    "private key",
		string(ssh.MarshalAuthorizedKey(weakKey)): "too weak",
		string(ssh.MarshalAuthorizedKey(cert)):    "cannot be used",
	} {
		if _, _, err := signature.ParseKey(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v does not say %q", in, err, want)
		}
	}
}

// TestASecurityKeyMustHaveBeenTouched makes the signature that a security key makes, which no program can without
// the hardware: the flags say whether a person touched it.
func TestASecurityKeyMustHaveBeenTouched(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	blob := ssh.Marshal(struct{ Type, Key, App string }{ssh.KeyAlgoSKED25519, string(public), "ssh:"})
	key, _, err := signature.ParseKey(line(blob, ssh.KeyAlgoSKED25519))
	if err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[byte]bool{1: true, 0: false, 4: false, 5: true} {
		hash := sha512.Sum512([]byte("text"))
		signed := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{
			signature.Namespace, "", "sha512", string(hash[:]),
		})...)
		app, sum := sha256.Sum256([]byte("ssh:")), sha256.Sum256(signed)
		message := append(app[:], flags, 0, 0, 0, 7)
		sig := ssh.Marshal(struct {
			Format, Blob string
			Rest         []byte `ssh:"rest"`
		}{ssh.KeyAlgoSKED25519, string(ed25519.Sign(private, append(message, sum[:]...))), []byte{flags, 0, 0, 0, 7}})
		all := append([]byte("SSHSIG"), ssh.Marshal(struct {
			Version                                uint32
			Key, Namespace, Reserved, Hash, Signed string
		}{1, string(blob), signature.Namespace, "", "sha512", string(sig)})...)
		armored := string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: all}))
		_, err := signature.Verify([]byte("text"), armored, []ssh.PublicKey{key})
		if (err == nil) != want {
			t.Errorf("flags %d: %v", flags, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	s, _ := ssh.NewSignerFromKey(private)
	good := string(ssh.MarshalAuthorizedKey(s.PublicKey()))
	for _, seed := range []string{
		good, "no-touch-required " + good, "# comment", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAA", `a="b\" c" ssh-ed25519 x`,
		"sk-ssh-ed25519@openssh.com AAAA", "ssh-ed25519-cert-v01@openssh.com AAAA", "\x00", strings.Repeat(" ", 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		key, _, err := signature.ParseKey(in)
		if err != nil {
			if len(err.Error()) > 300 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, _, err := signature.ParseKey(string(ssh.MarshalAuthorizedKey(key)))
		if err != nil || string(again.Marshal()) != string(key.Marshal()) {
			t.Fatalf("%q is read differently when written anew: %v", in, err)
		}
	})
}

func FuzzVerify(f *testing.F) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	s, _ := ssh.NewSignerFromKey(private)
	_, private, _ = ed25519.GenerateKey(rand.Reader)
	o, _ := ssh.NewSignerFromKey(private)
	good, err := signature.Sign(s, []byte("text"))
	if err != nil {
		f.Fatal(err)
	}
	other, _ := signature.Sign(o, []byte("text"))
	f.Add("text", good)
	f.Add("text", other)
	f.Add("other", good)
	f.Add("text", good+good)
	f.Add("text", "x\n"+good)
	f.Add("text", strings.Replace(good, "\n", "\nProc-Type: 4,ENCRYPTED\n\n", 1))
	f.Add("text", "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n")
	f.Add("", "")
	f.Add("text", strings.Repeat("A", signature.MaxArmored+1))
	f.Fuzz(func(t *testing.T, text, armored string) {
		key, err := signature.Verify([]byte(text), armored, []ssh.PublicKey{s.PublicKey()})
		if err != nil {
			if key != nil || len(err.Error()) > 300 {
				t.Fatalf("%v, %d bytes", key, len(err.Error()))
			}
			return
		}
		if text != "text" {
			t.Fatalf("accepted %q for %q", armored, text)
		}
	})
}
