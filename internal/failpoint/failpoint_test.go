package failpoint

import "testing"

func TestEveryPlaceIsNamedOnceAndExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Points() {
		if p.Name == "" || p.Meaning == "" || seen[p.Name] {
			t.Errorf("place %q: want a unique name and a meaning", p.Name)
		}
		seen[p.Name] = true
	}
	for _, name := range []string{
		ModelBeforeRequest, ModelAfterAnswer, ModelAfterAdoption, ApprovalAfterJudgement, ToolBeforeAdmission,
		ToolBeforeDispatch, ToolAfterDispatch, ToolAfterCommit, ToolAfterAdoption, ContinueBefore, ContinueAfter,
	} {
		if !seen[name] {
			t.Errorf("place %q is not in the table", name)
		}
	}
}
