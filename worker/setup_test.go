package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
)

func connect(t *testing.T, f *fakeTemporal) client.Client {
	t.Helper()
	c, err := client.Dial(f.start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSetupRegistersWaitsAndChangesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	f := &fakeTemporal{namespace: "team", retention: MinRetention, blind: 2}
	c := connect(t, f)
	for range 2 {
		warnings, err := Setup(t.Context(), c, "team")
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
	}
	if diff := cmp.Diff(allAttributes(), f.attributes); diff != "" {
		t.Error(diff)
	}
	if f.added != 1 || f.blind != 0 {
		t.Errorf("%d additions, %d refused searches left", f.added, f.blind)
	}
}

func TestSetupWarnsOfAShortRetention(t *testing.T) {
	t.Parallel()
	for kept, want := range map[time.Duration]string{
		24 * time.Hour: "after 1 day", 72 * time.Hour: "after 3 days", 36 * time.Hour: "after 36h0m0s",
	} {
		c := connect(t, &fakeTemporal{namespace: "team", retention: kept})
		warnings, err := Setup(t.Context(), c, "team")
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("%s: %q, %v", kept, warnings, err)
		}
	}
}

func TestSetupDoesNotTakeOverAnAttributeOfAnotherType(t *testing.T) {
	t.Parallel()
	there := map[string]enumspb.IndexedValueType{"HoldfastStatus": enumspb.INDEXED_VALUE_TYPE_INT}
	f := &fakeTemporal{namespace: "team", attributes: there}
	_, err := Setup(t.Context(), connect(t, f), "team")
	if err == nil || !strings.Contains(err.Error(), "remove it") || f.added != 0 {
		t.Errorf("%v, %d additions", err, f.added)
	}
}

func TestSetupWithoutTheRightSaysWhatAnAdministratorHasToDo(t *testing.T) {
	t.Parallel()
	f := &fakeTemporal{namespace: "team", deny: codes.PermissionDenied}
	_, err := Setup(t.Context(), connect(t, f), "team")
	if err == nil || !strings.Contains(err.Error(), "with its own tools") {
		t.Errorf("got %v", err)
	}
}
