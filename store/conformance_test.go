package store

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/drivertest"
)

// harness gives gocloud's conformance suite our driver.
type harness struct{ dir string }

func (h harness) MakeDriver(context.Context) (driver.Bucket, error) { return openFile(h.dir) }
func (h harness) MakeDriverForNonexistentBucket(context.Context) (driver.Bucket, error) {
	return nil, nil // a folder that is not there is made
}
func (h harness) HTTPClient() *http.Client         { return nil }
func (h harness) SupportsCopy() bool               { return true }
func (h harness) SupportsNonSlashDelimiters() bool { return true }
func (h harness) Close()                           {}

// attributes are the parts of the suite that a driver without content types and metadata cannot pass. The
// store uses neither.
const attributes = "TestConformance/TestAttributes|TestConformance/TestMetadata|TestConformance/TestCopy/Works|" +
	"TestConformance/TestCopy/DoesNotAliasAttributes|TestConformance/TestWrite/.*ContentType"

// TestConformance runs gocloud's suite for drivers in a process of its own, because only a flag can leave
// parts of it out.
func TestConformance(t *testing.T) {
	t.Parallel()
	if os.Getenv(childMode) == "conformance" {
		drivertest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (drivertest.Harness, error) {
			return harness{t.TempDir()}, nil
		}, nil)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestConformance$", "-test.v", "-test.skip="+attributes)
	cmd.Env = append(os.Environ(), childMode+"=conformance")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{
		"TestList", "TestListWeirdKeys", "TestListDelimiters", "TestRead", "TestWrite", "TestCanceledWrite",
		"TestConcurrentWriteAndRead", "TestUploadDownload", "TestCopy", "TestDelete", "TestKeys", "TestIfNotExist", "TestAs",
	} {
		if !strings.Contains(string(out), "--- PASS: TestConformance/"+part+" ") {
			t.Errorf("the suite did not run %s", part)
		}
	}
}
