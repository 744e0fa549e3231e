//go:build !failpoint

package failpoint

import "testing"

func TestABuildWithoutTheTagIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_FAILPOINT", "tool.after_commit=error")
	At(ToolAfterCommit)
	if err := AtErr(ToolAfterCommit); err != nil {
		t.Errorf("AtErr = %v, want nil in a build without the tag", err)
	}
	if err := Effect(ToolAfterCommit, true); err != nil {
		t.Errorf("Effect = %v, want nil in a build without the tag", err)
	}
	if ctx := t.Context(); Sent(ctx, ToolAfterSend) != ctx {
		t.Error("Sent returns another context in a build without the tag")
	}
	if Grpc() != nil {
		t.Error("Grpc is not nil in a build without the tag")
	}
}
