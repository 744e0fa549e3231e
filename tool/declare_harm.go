package tool

import (
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/expr"
)

// defaultRisk is that of a tool which declares none.
func (s Spec) defaultRisk() agent.Risk {
	switch {
	case s.Class == agent.ClassRead:
		return agent.RiskLow
	case s.Irreversible:
		return agent.RiskHigh
	}
	return agent.RiskMedium
}

// withHarm checks what a spec says about harm and undoing it. The class is set.
func (s Spec) withHarm() (Spec, error) {
	switch s.Risk {
	case "":
		s.Risk = s.defaultRisk()
	case agent.RiskLow, agent.RiskMedium, agent.RiskHigh:
	default:
		return s, fmt.Errorf("unknown risk %q; use low, medium or high", s.Risk)
	}
	switch {
	case s.AbsentAfter < 0:
		return s, errors.New("absent_after cannot be negative; remove it")
	case s.Class == agent.ClassRead && (s.Irreversible || s.Compensate != nil):
		return s, errors.New("it only reads, so there is nothing to undo; remove irreversible and compensate, or declare its effect")
	case s.Irreversible && s.Compensate != nil:
		return s, errors.New("it is irreversible and names what undoes it; remove one of them")
	case s.Compensate == nil:
		return s, nil
	case !toolName.MatchString(s.Compensate.Tool):
		return s, fmt.Errorf("what compensates it is called %.80q, which is no tool's name; write the name that the model calls", s.Compensate.Tool)
	}
	l, err := expr.New(map[string]expr.Type{"args": expr.Any, "result": expr.Any})
	if err == nil {
		_, err = l.Object(s.Compensate.Args)
	}
	if err != nil {
		return s, fmt.Errorf("compensate: %w", err)
	}
	return s, nil
}

// checkExtras holds a tool's class against what it can be asked.
func checkExtras(s Spec, reconciles bool) error {
	switch {
	case s.Class == agent.ClassReconcilable && !reconciles:
		return fmt.Errorf("tool %q: its class is reconcilable, but nothing says how it is asked what became of a call; "+
			"give it reconcile, or declare it once", s.Name)
	case s.Class == agent.ClassRead && reconciles:
		return fmt.Errorf("tool %q: it only reads, so nothing becomes of its calls; remove reconcile, or declare its effect", s.Name)
	case s.AbsentAfter != 0 && !reconciles:
		return fmt.Errorf("tool %q: absent_after is the delay of an answer to reconcile, which it has not; remove it", s.Name)
	}
	return nil
}
