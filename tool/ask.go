package tool

// extras are what a tool of this package can do besides its calls; nil where it cannot.
type extras struct {
	reconcile Reconciler
	observe   Observer
	cancel    Canceller
}

// An extended tool has methods or not by its declaration, which no Go interface can say.
type extended interface{ extras() extras }

// AsReconciler returns t as a tool that can be asked what became of a call, if it is one. Use it instead of a
// type assertion: of the tools that this package makes, only the declaration knows.
func AsReconciler(t Tool) (Reconciler, bool) {
	if e, ok := t.(extended); ok {
		r := e.extras().reconcile
		return r, r != nil
	}
	r, ok := t.(Reconciler)
	return r, ok
}

// AsObserver returns t as a tool that can say what state the target of a call is in, if it is one.
func AsObserver(t Tool) (Observer, bool) {
	if e, ok := t.(extended); ok {
		o := e.extras().observe
		return o, o != nil
	}
	o, ok := t.(Observer)
	return o, ok
}

// AsCanceller returns t as a tool that can stop a call that is under way, if it is one.
func AsCanceller(t Tool) (Canceller, bool) {
	if e, ok := t.(extended); ok {
		c := e.extras().cancel
		return c, c != nil
	}
	c, ok := t.(Canceller)
	return c, ok
}
